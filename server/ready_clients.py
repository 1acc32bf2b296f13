"""The clients that have sent something: looked for where the event loop waits, and served there.

Trio waits for input and output once between two passes over its tasks. To wake a task for every request would cost a
pass for each, more than most requests take. So the sockets of clients are in an epoll of our own; where Trio would wait
for its own, we wait for both, and call the function that belongs to a socket as soon as it has bytes, or room again
after it was full. Trio goes on when there is something for it: input or output of its own, the deadline that it waits
for, or a task that such a call has made runnable. So nothing here is seen by tasks, except that the wait between two
passes may have changed things, as any other task might have.

However many clients have sent something, Trio's timers and tasks get their turn every few milliseconds; the clients
that are left are served first then, before anybody is looked for.

A sleeping processor takes long to wake up: on a virtual machine tens of microseconds, as long as a small request takes
altogether. A client that sends its next request as soon as it has the answer is back before that pays. So while clients
with small requests come back that quickly, the loop looks for them a little longer before it sleeps. Whoever else wants
to run on its core, which may well be that client, goes first.

Where Trio is not as this expects (another kind of epoll, another version), `install` says so and connections wait
for their bytes by Trio's own means.
"""

from __future__ import annotations

import logging
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from time import perf_counter
from typing import Protocol

import trio

log = logging.getLogger("ottla.server")

_EVENTS = 64
_LOOK_SECONDS = 0.0002
_WAKE_SECONDS = 0.0001  # what it takes to wake up, by which a wait in one's sleep seems longer
_SURE = 8  # quick returns beyond those that count for nothing more
_LIKELY = 3
_BRISK_SECONDS = 0.0001  # what took longer was much work, beside which it is no matter to be woken
_FEW_TIMERS = 1000
_TURN_SECONDS = 0.001
_SHARERS = 8  # so many have a turn together; with shorter ones, more time would go into beginning them
_WOKEN_AT_ONCE = 8
_MOMENT_SECONDS = 0.0001
_EDGES = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
INPUT = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR  # or the end of it


class Watch(Protocol):
    """Is told when clients are served, and when they have been."""

    def begin(self) -> None: ...
    def end(self) -> None: ...


class ReadyClients:
    """Functions by the sockets whose bytes they wait for."""

    def __init__(self, others: select.epoll, runnable: Sequence[object]) -> None:
        """`others` is what Trio waits for, `runnable` the tasks that can go on at once."""
        self._others = others
        self._runnable = runnable
        self._epoll = select.epoll()
        self._epoll.register(others, select.EPOLLIN)
        self._functions: dict[int, Callable[[int], None]] = {}
        self._soon: list[Callable[[], None]] = []
        self._turns: list[Callable[[], None]] = []
        self._at_end: list[Callable[[], None]] = []
        self._to_wake: deque[Callable[[], None]] = deque()
        self.is_crowded = False  # several clients are served one after the other
        self.turn_seconds = _TURN_SECONDS  # how long whoever is called should take at most
        self._is_calling = False  # some of these, before their time
        self._left: list[tuple[int, int]] = []  # events of clients who were not served in the last turn
        self._timers: list[Timer] = []
        self._tidy_timers_at = _FEW_TIMERS
        self._quick_returns = 0  # how many more clients came back quickly than did not, of late
        self._is_brisk = True  # the clients that were served last got their answers in next to no time
        self.has_answered = False  # set by who has answered something small, and waits for the next of it
        self.watch: Watch | None = None

    def add(self, sock: socket.socket, on_ready: Callable[[int], None]) -> None:
        """Call the function with the events each time that bytes arrive, or the end of them; once, however many bytes
        they are."""
        self._functions[sock.fileno()] = on_ready
        self._epoll.register(sock, _EDGES)

    def add_output(self, sock: socket.socket) -> None:
        """Call it also when the socket, which is full, takes more, now and whenever that is so again. Not from the
        beginning: bytes that come while others are received are told of once more when they are gone, if there is
        anything else to tell."""
        self._epoll.modify(sock, _EDGES | select.EPOLLOUT)

    def remove(self, sock: socket.socket) -> None:
        """Before it is closed."""
        if self._functions.pop(sock.fileno(), None) is not None:
            self._epoll.unregister(sock)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function when the call that is under way, or the pass of Trio's tasks, has ended."""
        self._soon.append(function)

    def take_turn(self, function: Callable[[], None]) -> None:
        """The same for a function that takes a share of the loop: behind those, of which many are done in a moment."""
        self._turns.append(function)

    def call_at_end(self, function: Callable[[], None]) -> None:
        """Call a function when all have been served who are served now: the first of these before anything else is
        done, the others as far as there is time, or else soon."""
        self._at_end.append(function)

    def call_first(self) -> None:
        """Call at once what is to be called soon, as far as that takes no more than a moment."""
        if not self._soon or self._is_calling:
            return
        self._is_calling = True
        try:
            self._call_soon(perf_counter() + _MOMENT_SECONDS)
        finally:
            self._is_calling = False

    def wake(self, function: Callable[[], None]) -> None:
        """Call a function that lets a task go on, before Trio has its pass. All tasks that can go on do so in one pass,
        so that no more than some are woken for it."""
        self._to_wake.append(function)

    def call_after(self, seconds: float, function: Callable[[], None]) -> Timer:
        """Call a function after that time, unless the timer is cancelled."""
        timers = self._timers
        if len(timers) > self._tidy_timers_at:  # most are cancelled long before their time
            timers[:] = [timer for timer in timers if timer.function is not None]
            heapify(timers)
            self._tidy_timers_at = max(2 * len(timers), _FEW_TIMERS)
        timer = Timer(perf_counter() + seconds, function)
        heappush(timers, timer)
        return timer

    def wait(self, timeout: float, max_events: int) -> list[tuple[int, int]]:
        """Serve clients until there is an event among the others, a task is runnable or the time is up; returns the
        events of the others."""
        others = self._others
        now = perf_counter()
        timers = self._timers
        if timeout <= 0 or self._runnable or self._to_wake:
            self._serve(self._left or self._epoll.poll(0, _EVENTS), now)
            self._wake_some()
            return others.poll(0, max_events)
        ends = now + timeout
        while True:
            if self._left:
                events = self._left
            elif self._soon or self._turns or (timers and timers[0].at <= now):
                events = self._epoll.poll(0, _EVENTS)
            else:
                events = self._look(now, timers[0].at if timers and timers[0].at < ends else ends)
            woken_at = perf_counter()
            self.has_answered = False
            has_others = self._serve(events, woken_at)
            now = perf_counter()
            self._is_brisk = self.has_answered and now - woken_at < _BRISK_SECONDS
            if self._to_wake:
                self._wake_some()
            if has_others or self._runnable or now >= ends:
                return others.poll(0, max_events)
            if self._left or self._soon or self._turns:
                found = others.poll(0, max_events)
                if found:
                    return found

    def _wake_some(self) -> None:
        to_wake = self._to_wake
        for _ in range(min(len(to_wake), _WOKEN_AT_ONCE)):
            to_wake.popleft()()

    def _look(self, now: float, ends: float) -> list[tuple[int, int]]:
        """The sockets with something new, as soon as there are any or the time is up."""
        poll = self._epoll.poll
        if not self._is_brisk:
            return poll(max(ends - now, 0), _EVENTS)  # a negative time would be forever
        quick = _LOOK_SECONDS
        if self._quick_returns >= _LIKELY:
            looks_until = now + _LOOK_SECONDS
            while True:
                os.sched_yield()
                events = poll(0, _EVENTS)
                since = perf_counter()
                if events or since > looks_until:
                    break
            if events:
                self._quick_returns = min(self._quick_returns + 1, _SURE)
                return events
            if since >= ends:
                return events
            self._quick_returns -= 2
            now = since
        else:
            quick += _WAKE_SECONDS
        events = poll(max(ends - now, 0), _EVENTS)
        if events and perf_counter() - now < quick:
            self._quick_returns = min(self._quick_returns + 1, _SURE)
        elif self._quick_returns > 0:
            self._quick_returns -= 1
        return events

    def _serve(self, events: list[tuple[int, int]], now: float) -> bool:
        """Whether there was something among the others, too. What would take too long is left for the next turn."""
        watch = self.watch
        if watch is not None:
            watch.begin()
        ends = now + _TURN_SECONDS
        others = self._call(events, ends) if events else False
        timers = self._timers
        if timers and timers[0].at <= ends:
            now = perf_counter()
            while timers and timers[0].at <= now:
                timer = heappop(timers)
                if timer.function is not None:
                    self._soon.append(timer.function)
        if self._soon or self._turns:
            self._share_turn(len(self._soon) + len(self._turns))
            if self._soon:
                self._call_soon(ends)
            if self._turns:
                turns, self._turns = self._turns, []
                self._turns[:0] = _call_until(ends, turns)
        if watch is not None:
            watch.end()
        return others

    def _call_soon(self, ends: float) -> None:
        soon, self._soon = self._soon, []
        self._soon[:0] = _call_until(ends, soon)

    def _share_turn(self, sharers: int) -> None:
        self.turn_seconds = _TURN_SECONDS / min(sharers, _SHARERS)

    def _call(self, events: list[tuple[int, int]], ends: float) -> bool:
        others = False
        functions = self._functions
        self._left = []
        self.is_crowded = len(events) > 1
        self._share_turn(len(events))
        for number, (fd, event) in enumerate(events, 1):
            function = functions.get(fd)
            if function is not None:
                function(event)
                if self.is_crowded and perf_counter() > ends:
                    self._left = events[number:]
                    break
            else:
                others = True
        self.is_crowded = False
        if self._at_end:
            at_end, self._at_end = self._at_end, []
            self._soon[:0] = _call_until(ends, at_end)
        return others


def _call_until(ends: float, functions: list[Callable[[], None]]) -> list[Callable[[], None]]:
    """Call the first, and the others while there is time; those that are left."""
    for number, function in enumerate(functions, 1):
        function()
        if perf_counter() > ends:
            return functions[number:]
    return []


class Timer:
    """Something to be done at a time of the performance counter."""

    __slots__ = ("at", "function")

    def __init__(self, at: float, function: Callable[[], None]) -> None:
        self.at = at
        self.function: Callable[[], None] | None = function

    def __lt__(self, other: Timer) -> bool:
        return self.at < other.at

    def cancel(self) -> None:
        """Do nothing when the time comes."""
        self.function = None


_of_this_run: trio.lowlevel.RunVar[ReadyClients | None] = trio.lowlevel.RunVar("ready_clients")


def ready_clients() -> ReadyClients | None:
    """The clients of this run of Trio, waited for in its place from now on; None where it does not allow that."""
    try:
        return _of_this_run.get()
    except LookupError:
        clients = _take_over()
        _of_this_run.set(clients)
        return clients


def _take_over() -> ReadyClients | None:
    try:
        from trio._core._io_epoll import EpollIOManager
        from trio._core._run import GLOBAL_RUN_CONTEXT

        runner = GLOBAL_RUN_CONTEXT.runner
        manager = runner.io_manager
        others, registered, runnable = manager._epoll, manager._registered, runner.runq
        clients = ReadyClients(others, runnable)
        wait = clients.wait

        class ClientsFirst(EpollIOManager):
            """Trio's own, but for where it waits."""

            __slots__ = ()

            def get_events(self, timeout: float) -> list[tuple[int, int]]:
                return wait(timeout, max(1, len(registered)))

        manager.__class__ = ClientsFirst
    except (ImportError, AttributeError, TypeError) as error:
        log.info("clients are waited for by trio itself reason=%s", error)
        return None
    return clients
