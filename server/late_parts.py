"""The parts of a broker that are made when somebody first needs them, or else soon after the start.

The coordinators and the cleaner are a good part of all the code there is. A broker that is started for a test, or for
a topic without groups, answers its first clients without having read it.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

import trio

from ottla.server.coordinated import GROUPS, SHARE_GROUPS, TRANSACTIONS
from ottla.server.garbage import set_aside
from ottla.server.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from ottla.server.own_threads import OwnThreads

if TYPE_CHECKING:
    from ottla.metadata.image import MetadataDelta
    from ottla.server.broker import Broker
    from ottla.server.groups.coordinator import GroupCoordinator
    from ottla.server.log_cleaner import LogCleaner
    from ottla.server.registry import Registration
    from ottla.server.share.coordinator import ShareGroups
    from ottla.server.transactions.coordinator import TransactionCoordinator

_MAKE_ALL_AFTER_SECONDS = 0.5
_MODULES = (GROUPS, SHARE_GROUPS, TRANSACTIONS, "ottla.server.log_cleaner")
# What others import when they first need it. It is there by then: somebody may have taken the last file descriptor.
_NEEDED_SOME_DAY = ("concurrent.futures.thread", "json", "shutil", "ottla.server.transactions.producing")


# One at a time: threads that import the same things would only wait for each other.
_LOADING = OwnThreads("loading", 1)
_imported: set[str] = set()


async def load(registration: Registration) -> None:
    """Have the code of an API, in a thread: the loop goes on meanwhile."""
    await _LOADING.run(registration.load)


async def prepare(registration: Registration, version: int) -> None:
    """The same, with what reads and writes a version of it."""
    await _LOADING.run(registration.prepare, version)


def is_imported(module: str) -> bool:
    """Whether `import_late` has nothing to do."""
    return module in _imported


async def import_late(module: str) -> None:
    """Have a module in the same way. One that another thread is importing is waited for there, too."""
    if module not in _imported:
        await _LOADING.run(import_module, module)
        _imported.add(module)


class LateParts:
    """What coordinates groups, share groups and transactions, and what compacts."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._to_run, self._run_queue = trio.open_memory_channel[Callable[[], Awaitable[None]]](float("inf"))

    @cached_property
    def groups(self) -> GroupCoordinator:
        from ottla.server.groups.coordinator import GroupCoordinator

        coordinator = GroupCoordinator(self._broker)
        coordinator.open()
        self._to_run.send_nowait(coordinator.run)
        if SHARE_STATE_TOPIC in self._broker.image.topics_by_name:
            _ = self.share  # both are loaded at once: members come back and fetch
        return coordinator

    @cached_property
    def share(self) -> ShareGroups:
        from ottla.server.share.coordinator import ShareGroups

        coordinator = ShareGroups(self._broker)
        coordinator.states.open()
        self._to_run.send_nowait(coordinator.run)
        return coordinator

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        from ottla.server.transactions.coordinator import TransactionCoordinator

        coordinator = TransactionCoordinator(self._broker)
        coordinator.open()
        self._to_run.send_nowait(coordinator.run)
        return coordinator

    @cached_property
    def cleaner(self) -> LogCleaner:
        from ottla.server.log_cleaner import LogCleaner

        cleaner = LogCleaner(self._broker)
        self._to_run.send_nowait(cleaner.run)
        return cleaner

    async def follow(self, delta: MetadataDelta) -> None:
        """The metadata changed; what is made later will find it so."""
        if "groups" in self.__dict__:
            await self.groups.follow(delta)
        if "share" in self.__dict__:
            self.share.follow(delta)
        if "transactions" in self.__dict__:
            self.transactions.follow(delta)

    def begin_stop(self) -> None:
        """Let whoever waits be answered with what there is."""
        if "groups" in self.__dict__:
            self.groups.begin_stop()

    async def run(self) -> None:
        """Run what is made until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._make_all)
            async for run in self._run_queue:
                nursery.start_soon(run)

    async def _make_all(self) -> None:
        """A module at a time, so that a stop does not wait long."""
        if not {OFFSETS_TOPIC, TRANSACTIONS_TOPIC} & self._broker.image.topics_by_name.keys():
            await trio.sleep(_MAKE_ALL_AFTER_SECONDS)
        await trio.to_thread.run_sync(_import_what_is_needed_some_day)
        for registration in self._broker.registry.values():
            await load(registration)
        for module in _MODULES:
            await import_late(module)
        _ = self.groups, self.share, self.transactions, self.cleaner
        set_aside()


def _import_what_is_needed_some_day() -> None:
    for name in _NEEDED_SOME_DAY:
        import_module(name)
    _ = traceback.TracebackException  # it may have been put off
