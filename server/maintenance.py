"""What a broker does beside answering: retention, flushing, checkpoints, deleted files, idle producers, snapshots.

Each chore is a loop with the interval that Kafka's configuration names. Decisions on a log are made in the event
loop, where appends are made too; what touches the disk for long runs in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from ottla.log_store.directory import flush_logs
from ottla.log_store.log import Log
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_FLUSH_CHECK_SECONDS = 1.0
_SNAPSHOT_CHECK_SECONDS = 60.0
_LOGS_BETWEEN_YIELDS = 200


class Maintenance:
    """The broker's chores."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._purges: trio.Nursery | None = None
        self._purge_is_due = False

    async def run(self) -> None:
        """Do all chores until cancelled."""
        config = self._broker.config
        async with trio.open_nursery() as nursery:
            self._purges = nursery
            nursery.start_soon(
                _every, config.get_int("log.retention.check.interval.ms") / 1000, self.enforce_retention
            )
            nursery.start_soon(
                _every,
                config.get_int("log.flush.offset.checkpoint.interval.ms") / 1000,
                self.write_checkpoints,
            )
            nursery.start_soon(
                _every,
                config.get_int("producer.id.expiration.check.interval.ms") / 1000,
                self.forget_idle_producers,
            )
            nursery.start_soon(_every, _FLUSH_CHECK_SECONDS, self.flush_due_logs)
            nursery.start_soon(_every, _SNAPSHOT_CHECK_SECONDS, self._broker.write_metadata_snapshot_if_due)
            self.purge_later()

    async def enforce_retention(self) -> None:
        """Delete old segments, and their files after file.delete.delay.ms."""
        now_ms = self._broker.now_ms()
        deleted = 0
        async for each in self._open_logs():
            try:
                deleted += each.delete_old_segments(now_ms)
            except KafkaError as error:
                log.error("retention failed partition=%s error=%s", each.name, error)
        if deleted:
            self.purge_later()

    async def forget_idle_producers(self) -> None:
        """Drop the state of producers idle for producer.id.expiration.ms."""
        now_ms = self._broker.now_ms()
        async for each in self._open_logs():
            each.producers.remove_expired(now_ms)

    async def _open_logs(self) -> AsyncIterator[Log]:
        """Every log in use, with a pause now and then so that clients are not kept waiting."""
        for count, partition in enumerate(list(self._broker.partitions), 1):
            if count % _LOGS_BETWEEN_YIELDS == 0:
                await trio.lowlevel.checkpoint()
            if not partition.log.is_closed:
                yield partition.log

    def purge_later(self) -> None:
        """Remove the files of deleted segments and topics once nobody needs to find them by name any more; one
        that is due takes the files of later deletions along."""
        if self._purges is not None and not self._purge_is_due:
            self._purge_is_due = True
            delay = self._broker.config.get_int("log.segment.delete.delay.ms") / 1000
            self._purges.start_soon(self._purge_after, delay)

    async def _purge_after(self, delay: float) -> None:
        await trio.sleep(delay)
        self._purge_is_due = False
        await _attempt(self.purge)

    async def purge(self) -> None:
        """Remove the files of deleted segments and topics now."""
        await trio.to_thread.run_sync(self._purge)

    def _purge(self) -> None:
        for directory in self._broker.logs.directories:
            directory.purge_deleted()
            for each in list(directory.logs.values()):
                if each.deleted_files:
                    each.purge_deleted_files()

    async def write_checkpoints(self) -> None:
        """Write recovery points, high watermarks and log starts."""
        for directory in self._broker.logs.directories:
            await trio.to_thread.run_sync(directory.write_checkpoints)

    async def flush_due_logs(self) -> None:
        """fsync rolled segments, and logs whose flush.ms has passed."""
        now_ms = self._broker.now_ms()
        due = []
        for partition in self._broker.partitions:
            each = partition.log
            if each.is_closed or not each.unflushed_messages:
                partition.flushed_ms = now_ms
            elif each.has_unflushed_segments or now_ms - partition.flushed_ms >= each.config.flush_ms:
                partition.flushed_ms = now_ms
                due.append(each)
        if due:
            await trio.to_thread.run_sync(flush_logs, due)


async def _every(seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
    while True:
        await trio.sleep(seconds)
        await _attempt(chore)


async def _attempt(chore: Callable[[], Awaitable[None]]) -> None:
    """A chore that the disk refuses is tried again at its next turn, and one with a bug in it is told with its
    traceback; the broker serves on in both cases."""
    name = getattr(chore, "__name__", chore)
    try:
        await chore()
    except (OSError, KafkaError) as error:
        log.error("chore failed chore=%s error=%s", name, error)
    except Exception:
        log.exception("chore failed chore=%s", name)
