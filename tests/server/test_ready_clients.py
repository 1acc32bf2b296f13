"""Serving clients where the event loop waits: nobody is forgotten, neither clients nor tasks."""

import logging
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import pytest
import trio
import trio.testing

from ottla.server import ready_clients as module
from ottla.server.ready_clients import INPUT, ReadyClients, ready_clients


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Our end, which does not block, and the client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def of_this_run() -> ReadyClients:
    clients = ready_clients()
    assert clients is not None
    return clients


def on_input(function: Callable[[], object]) -> Callable[[int], None]:
    """Call a function for what has come, not for room to send."""

    def on_ready(events: int) -> None:
        if events & INPUT:
            function()

    return on_ready


async def test_a_function_is_called_once_for_what_has_come() -> None:
    """Bytes that stay in the socket are not told again; new ones are, and so is the end."""
    with pair() as (ours, theirs):
        seen: list[int] = []
        clients = of_this_run()
        clients.add(ours, on_input(lambda: seen.append(len(ours.recv(100, socket.MSG_PEEK)))))
        theirs.send(b"one")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == [3]
        theirs.send(b"two")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == [3, 6]
        theirs.close()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == [3, 6, 6]
        clients.remove(ours)


async def test_a_socket_that_was_full_is_told_when_it_takes_more() -> None:
    """Once, and not as input; also if it takes more by the time that this is asked for. Before, nobody is called for
    it."""
    with pair() as (ours, theirs):
        clients = of_this_run()
        seen: list[int] = []
        clients.add(ours, seen.append)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == []
        clients.add_output(ours)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == [select.EPOLLOUT]
        with suppress(BlockingIOError):
            while True:
                ours.send(bytes(65536))
        await trio.testing.wait_all_tasks_blocked(0.01)
        seen.clear()
        theirs.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                theirs.recv(1 << 20)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == [select.EPOLLOUT]
        clients.remove(ours)


async def test_bytes_that_are_gone_call_nobody() -> None:
    """They were received by somebody who was called for those before them."""
    with pair() as (ours, theirs):
        clients = of_this_run()
        seen: list[tuple[int, bytes]] = []

        def receive(events: int) -> None:
            theirs.send(b"two")
            seen.append((events, ours.recv(100)))

        clients.add(ours, receive)
        theirs.send(b"one")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == [(select.EPOLLIN, b"onetwo")]
        clients.remove(ours)


async def test_nobody_is_called_who_was_removed() -> None:
    """Also when he is removed by another one's call of the same moment, or twice."""
    with pair() as (first, one), pair() as (second, two):
        clients = of_this_run()
        seen: list[str] = []

        def leave(who: str) -> None:
            seen.append(who)
            clients.remove(first)
            clients.remove(second)

        clients.add(first, on_input(lambda: leave("first")))
        clients.add(second, on_input(lambda: leave("second")))
        one.send(b"x")
        two.send(b"x")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert len(seen) == 1


async def test_a_task_that_a_call_wakes_goes_on_at_once() -> None:
    """Though nothing that Trio waits for has happened."""
    with pair() as (ours, theirs):
        woken = trio.Event()
        clients = of_this_run()
        clients.add(ours, on_input(woken.set))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, theirs.send, b"x")
            with trio.fail_after(60):
                await woken.wait()
        clients.remove(ours)


async def test_tasks_go_on_while_clients_never_stop() -> None:
    """A client that has always sent something more keeps neither timers nor tasks from their turn."""
    with pair() as (ours, theirs):
        clients = of_this_run()
        served = 0

        def echo() -> None:
            nonlocal served
            served += 1
            ours.recv(100)
            theirs.send(b"again")

        clients.add(ours, on_input(echo))
        theirs.send(b"first")
        for _ in range(3):
            await trio.sleep(0.001)
        a, b = trio.socket.socketpair()
        with a, b:
            await a.send(b"x")
            assert await b.recv(1) == b"x"
        await trio.to_thread.run_sync(lambda: None)
        clients.remove(ours)
        assert served > 3


async def test_there_is_one_for_each_run() -> None:
    """Several servers in one run wait together."""
    assert ready_clients() is ready_clients()
    in_another_run = await trio.to_thread.run_sync(trio.run, _ready_clients_of_another_run)
    assert in_another_run is not ready_clients()


async def _ready_clients_of_another_run() -> ReadyClients | None:
    return ready_clients()


def test_trio_waits_itself_where_it_does_not_let_us(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A version of Trio that keeps its things elsewhere is served by its own means, with a line that says so."""
    caplog.set_level(logging.INFO, "ottla.server")
    monkeypatch.setattr("trio._core._io_epoll.EpollIOManager", None)
    assert trio.run(_ready_clients_of_another_run) is None
    assert "clients are waited for by trio itself" in caplog.text


async def test_timers_and_calls_that_are_due_soon() -> None:
    """In the order of their times; a cancelled one is not called; what a call asks for soon is done, too."""
    clients = of_this_run()
    seen: list[str] = []
    done = trio.Event()
    clients.call_after(0.02, lambda: clients.call_soon(done.set))
    clients.call_after(0.01, lambda: seen.append("second"))
    clients.call_after(0.015, lambda: seen.append("never")).cancel()
    clients.call_after(0.0, lambda: clients.call_soon(lambda: seen.append("first")))
    await done.wait()
    assert seen == ["first", "second"]


async def test_calls_that_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as take no more than a moment, and none of those that they ask for; the others in their turn."""
    clients = of_this_run()
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    order: list[str] = []
    done = trio.Event()

    def call(name: str, seconds: float) -> None:
        clock.seconds += seconds
        order.append(name)
        if name == "first":
            clients.call_soon(lambda: call("asked for", 0))
            clients.call_first()
        if name == "fourth":
            done.set()

    for name, seconds in (("first", 0.00001), ("second", 0.001), ("third", 0.00001), ("fourth", 0.00001)):
        clients.call_soon(partial(call, name, seconds))
    clients.call_first()
    order.append("then")
    await done.wait()
    assert order == ["first", "second", "then", "third", "fourth", "asked for"]


async def test_cancelled_timers_do_not_pile_up() -> None:
    """Requests that wait long are mostly answered long before."""
    clients = of_this_run()
    for _ in range(10_000):
        clients.call_after(3600, lambda: None).cancel()
    assert len(clients._timers) < 3000


class Played:
    """An epoll and a clock that play what they were told: after how many microseconds the next event comes."""

    def __init__(self, gaps_us: list[int]) -> None:
        self._gaps_us = gaps_us
        self._now_us = 0
        self._next_us = gaps_us[0]
        self.slept = 0

    def now(self) -> float:
        self._now_us += 1
        return self._now_us / 1e6

    def poll(self, timeout: float, _: int) -> list[tuple[int, int]]:
        if timeout > 0:
            self.slept += 1
            self._now_us = max(self._now_us, self._next_us)
        if self._now_us < self._next_us:
            return []
        self._gaps_us.pop(0)
        if self._gaps_us:
            self._next_us = self._now_us + self._gaps_us[0]
        return [(-1, 0)]


@pytest.mark.parametrize(
    ("gaps_us", "brisk", "slept"),
    [
        pytest.param([50] * 100, True, 3, id="clients that come back quickly are looked for"),
        pytest.param([5000] * 100, True, 100, id="for those who do not the loop sleeps"),
        pytest.param([50] * 50 + [5000] * 50, True, 53, id="it stops looking when they stop"),
        pytest.param([50, 5000] * 50, True, 100, id="and does not begin when it pays every other time only"),
        pytest.param([50] * 100, False, 100, id="nor beside requests that take long"),
    ],
)
def test_the_loop_looks_a_little_longer_where_that_pays(
    monkeypatch: pytest.MonkeyPatch, gaps_us: list[int], brisk: bool, slept: int
) -> None:
    """To sleep and to be woken takes longer than a quick client."""
    played = Played(list(gaps_us))
    monkeypatch.setattr(module, "perf_counter", played.now)
    clients = ReadyClients.__new__(ReadyClients)
    clients._epoll = played  # type: ignore[assignment]
    clients._quick_returns = 0
    clients._is_brisk = brisk
    for _ in gaps_us:
        assert clients._look(played.now(), 1e9) == [(-1, 0)]
    assert played.slept == slept


async def test_the_loop_looks_only_behind_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has sent only a piece of something does not wait for anything."""
    clients = of_this_run()
    look = clients._look
    brisk: list[bool] = []

    def noted(now: float, ends: float) -> list[tuple[int, int]]:
        brisk.append(clients._is_brisk)
        return look(now, ends)

    def serve() -> None:
        clients.has_answered = ours.recv(100) == b"whole"

    monkeypatch.setattr(clients, "_look", noted)
    monkeypatch.setattr(module, "_BRISK_SECONDS", 60)  # however busy the machine is
    with pair() as (ours, theirs):
        clients.add(ours, on_input(serve))
        theirs.send(b"piece")
        await trio.testing.wait_all_tasks_blocked(0.01)
        brisk.clear()
        theirs.send(b"piece")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert brisk
        assert True not in brisk
        theirs.send(b"whole")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert True in brisk
        clients.remove(ours)


class Clock:
    """One that goes on when it is told, and a little each time that it is looked at."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1e-6
        return self.seconds


async def _checkpoint_until(order: list[str], count: int) -> None:
    while order.count("call") < count:
        order.append("task")
        await trio.lowlevel.checkpoint()


def _calls_in_a_row(order: list[str]) -> int:
    return max(len(calls.split()) for calls in " ".join(order).split("task"))


@pytest.mark.parametrize(("call_seconds", "in_a_row"), [(0.00001, 20), (0.0004, 3), (0.01, 1)])
async def test_tasks_have_their_turn_between_many_clients(
    monkeypatch: pytest.MonkeyPatch, call_seconds: float, in_a_row: int
) -> None:
    """Clients who have all sent something are served for a millisecond at a time, and nobody is forgotten."""
    clients = of_this_run()
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    order: list[str] = []

    def serve() -> None:
        clock.seconds += call_seconds
        order.append("call")

    with ExitStack() as stack:
        pairs = [stack.enter_context(pair()) for _ in range(20)]
        for ours, _ in pairs:
            clients.add(ours, on_input(serve))
        for _, theirs in pairs:
            theirs.send(b"x")
        with trio.fail_after(60):
            await _checkpoint_until(order, 20)
        for ours, _ in pairs:
            clients.remove(ours)
    assert order.count("call") == 20
    assert _calls_in_a_row(order) == in_a_row


@pytest.mark.parametrize(("call_seconds", "in_a_row"), [(0.00001, 20), (0.0004, 3), (0.01, 1)])
async def test_tasks_have_their_turn_between_many_calls(
    monkeypatch: pytest.MonkeyPatch, call_seconds: float, in_a_row: int
) -> None:
    """One record may wake very many who wait for it."""
    clients = of_this_run()
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    order: list[str] = []

    def answer() -> None:
        clock.seconds += call_seconds
        order.append("call")

    for _ in range(20):
        clients.call_soon(answer)
    with trio.fail_after(60):
        await _checkpoint_until(order, 20)
    assert _calls_in_a_row(order) == in_a_row


@pytest.mark.parametrize(("sharers", "parts"), [(1, 1), (4, 4), (20, 8)])
async def test_those_who_are_served_together_share_a_turn(sharers: int, parts: int) -> None:
    """So that whoever comes in the midst of many who have much to do need not wait for a whole turn of each."""
    clients = of_this_run()
    called: list[float] = []
    served: list[float] = []
    with ExitStack() as stack:
        pairs = [stack.enter_context(pair()) for _ in range(sharers)]
        for ours, _ in pairs:
            clients.add(ours, on_input(lambda: served.append(clients.turn_seconds)))
        await trio.testing.wait_all_tasks_blocked(0.01)
        for _, theirs in pairs:
            clients.call_soon(lambda: called.append(clients.turn_seconds))
            theirs.send(b"x")
        await trio.testing.wait_all_tasks_blocked(0.01)
        for ours, _ in pairs:
            clients.remove(ours)
    assert called[0] == served[0] == module._TURN_SECONDS / parts


async def test_clients_have_their_turn_beside_one_that_goes_on_and_on() -> None:
    """As a connection does that sends a very large answer to a quick reader."""
    clients = of_this_run()
    calls = 0
    served = trio.Event()

    def go_on() -> None:
        nonlocal calls
        calls += 1
        if not served.is_set() and calls < 100_000:
            clients.call_soon(go_on)

    with pair() as (ours, theirs):
        clients.add(ours, on_input(served.set))
        clients.call_soon(go_on)
        theirs.send(b"x")
        await served.wait()
        clients.remove(ours)
    assert calls < 1000


async def test_clients_that_are_left_do_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that ends early is followed by the next one without a wait, whether or not tasks are runnable."""
    clients = of_this_run()
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    served = 0
    done = trio.Event()

    def serve() -> None:
        nonlocal served
        clock.seconds += 1
        served += 1
        if served == 20:
            clients.call_soon(lambda: clients.call_soon(done.set))

    with ExitStack() as stack:
        pairs = [stack.enter_context(pair()) for _ in range(20)]
        for ours, theirs in pairs:
            clients.add(ours, on_input(serve))
            theirs.send(b"x")
        with trio.fail_after(60):
            await done.wait()
        for ours, _ in pairs:
            clients.remove(ours)
    assert served == 20
