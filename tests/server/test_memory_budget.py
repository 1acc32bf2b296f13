"""The bound on bytes that all requests may hold together."""

import trio
import trio.testing

from ottla.server.memory_budget import MemoryBudget


async def test_reservations_wait_their_turn_and_are_granted_in_order() -> None:
    """Who comes later does not overtake, even when it would fit."""
    budget = MemoryBudget(100)
    assert budget.reserve_nowait(80)
    granted: list[int] = []

    async def reserve(size: int) -> None:
        await budget.reserve(size)
        granted.append(size)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reserve, 60)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(reserve, 10)
        await trio.testing.wait_all_tasks_blocked()
        assert granted == []
        assert budget.has_waiters
        budget.release(40)
        await trio.testing.wait_all_tasks_blocked()
        assert granted == [60]
        budget.release(40)
    assert granted == [60, 10]
    assert budget.used_bytes == 70


async def test_a_frame_larger_than_the_budget_passes_when_alone() -> None:
    """A limit below the largest frame slows down, but never stands still."""
    budget = MemoryBudget(10)
    await budget.reserve(50)
    assert budget.used_bytes == 50
    assert not budget.reserve_nowait(1)


async def test_a_cancelled_wait_gives_nothing_and_blocks_nobody() -> None:
    """The next in line goes on when the one before it gives up."""
    budget = MemoryBudget(100)
    await budget.reserve(90)
    granted = trio.Event()

    async def small() -> None:
        await budget.reserve(10)
        granted.set()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            nursery.start_soon(small)
            await budget.reserve(50)
        await granted.wait()
    assert budget.used_bytes == 100


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()
