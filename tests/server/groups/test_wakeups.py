"""Many who wait are woken a few at a time, and all in the end."""

import trio
import trio.testing

from ottla.server.groups.wakeups import Wakeups


async def test_others_get_their_turn(nursery: trio.Nursery) -> None:
    """Between the first and the last of many that are woken somebody else gets his turns; the first comes first."""
    wakeups = Wakeups()
    nursery.start_soon(wakeups.run)
    order: list[int] = []
    turns_before_last = 0

    async def wait(number: int, event: trio.Event) -> None:
        await event.wait()
        order.append(number)

    events = [trio.Event() for _ in range(1000)]
    for number, event in enumerate(events):
        nursery.start_soon(wait, number, event)
    await trio.testing.wait_all_tasks_blocked()
    for event in events:
        wakeups.wake(event)
    while len(order) < len(events):
        await trio.lowlevel.checkpoint()
        turns_before_last += 1
    assert turns_before_last > 10
    assert set(order[:100]) < set(range(200))
    nursery.cancel_scope.cancel()


async def test_nobody_is_left_behind() -> None:
    """Who is still to be woken when the broker stops is woken then."""
    wakeups = Wakeups()
    events = [trio.Event() for _ in range(100)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wakeups.run)
        for event in events:
            wakeups.wake(event)
        nursery.cancel_scope.cancel()
    assert all(event.is_set() for event in events)
