"""What a broker does beside answering: retention, flushing, checkpoints, removing deleted files, metadata snapshots.

Each chore is a loop with the interval that Kafka's configuration names. Decisions on a log are made in the event
loop, where appends are made too; what touches the disk for long runs in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from ottla.log_store.directory import flush_logs
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
        self._last_flush_ms: dict[int, int] = {}

    async def run(self) -> None:
        """Do all chores until cancelled."""
        config = self._broker.config
        async with trio.open_nursery() as nursery:
            self._purges = nursery
            nursery.start_soon(
                _every, config.get_int("log.retention.check.interval.ms") / 1000, self.enforce_retention
            )
            nursery.start_soon(
                _every, config.get_int("log.flush.offset.checkpoint.interval.ms") / 1000, self.write_checkpoints
            )
            nursery.start_soon(_every, _FLUSH_CHECK_SECONDS, self.flush_due_logs)
            nursery.start_soon(_every, _SNAPSHOT_CHECK_SECONDS, self._broker.write_metadata_snapshot_if_due)
            self.purge_later()

    async def enforce_retention(self) -> None:
        """Delete old segments, and their files after file.delete.delay.ms."""
        now_ms = self._broker.now_ms()
        for count, partition in enumerate(list(self._broker.partitions)):
            if count % _LOGS_BETWEEN_YIELDS == _LOGS_BETWEEN_YIELDS - 1:
                await trio.lowlevel.checkpoint()
            if partition.log.is_closed:
                continue
            try:
                deleted = partition.log.delete_old_segments(now_ms)
            except KafkaError as error:
                log.error("retention failed partition=%s error=%s", partition.log.name, error)
                continue
            if deleted:
                self.purge_later()

    def purge_later(self) -> None:
        """Remove the files of deleted segments and topics once nobody needs to find them by name any more."""
        if self._purges is not None:
            delay = self._broker.config.get_int("log.segment.delete.delay.ms") / 1000
            self._purges.start_soon(self._purge_after, delay)

    async def _purge_after(self, delay: float) -> None:
        await trio.sleep(delay)
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
                continue
            last_ms = self._last_flush_ms.setdefault(id(each), now_ms)
            if each.has_unflushed_segments or now_ms - last_ms >= each.config.flush_ms:
                due.append(each)
                self._last_flush_ms[id(each)] = now_ms
        if due:
            try:
                await trio.to_thread.run_sync(flush_logs, due)
            except KafkaError as error:
                log.error("flush failed error=%s", error)


async def _every(seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
    while True:
        await trio.sleep(seconds)
        await chore()
