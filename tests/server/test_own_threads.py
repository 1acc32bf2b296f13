"""Threads that are limited for each event loop by itself."""

import threading

import trio

from ottla.server.own_threads import OwnThreads

THREADS = OwnThreads("test", 1)


async def test_one_at_a_time() -> None:
    """The second waits until the first has ended."""
    running: list[int] = []
    most = 0

    def work(number: int) -> None:
        nonlocal most
        running.append(number)
        most = max(most, len(running))
        running.remove(number)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(THREADS.run, work, number)
    assert most == 1


def test_loops_do_not_wait_for_each_other() -> None:
    """Two loops in one process may each have their thread: both are needed here for either to end."""
    both = threading.Barrier(2, timeout=30)
    arrived: list[int] = []

    def run() -> None:
        arrived.append(trio.run(THREADS.run, both.wait))

    loops = [threading.Thread(target=run) for _ in range(2)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert sorted(arrived) == [0, 1]
