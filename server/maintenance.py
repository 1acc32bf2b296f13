"""What a broker does beside answering: retention, flushing, checkpoints, deleted files, idle producers, snapshots.

Each chore is a loop with the interval that Kafka's configuration names. Decisions on a log are made in the event
loop, where appends are made too; what touches the disk for long runs in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from ottla.log_store.deletion import SEGMENTS_AT_ONCE
from ottla.log_store.directory import flush_logs
from ottla.log_store.log import Log
from ottla.server.garbage import look_through
from ottla.server.turns import Turns, map_in_turns
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker
    from ottla.server.partition import Partition

log = logging.getLogger("ottla.server")

_FLUSH_CHECK_SECONDS = 1.0
_PURGE_CHECK_SECONDS = 1.0
_SNAPSHOT_CHECK_SECONDS = 60.0
_GARBAGE_SECONDS = 3600.0


class Maintenance:
    """The broker's chores."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(self) -> None:
        """Do all chores until cancelled."""
        config = self._broker.config
        first_ms = config.get_int("log.initial.task.delay.ms")
        chores = (
            (self.enforce_retention, config.get_int("log.retention.check.interval.ms")),
            (self.write_recovery_points, config.get_int("log.flush.offset.checkpoint.interval.ms")),
            (self.write_log_starts, config.get_int("log.flush.start.offset.checkpoint.interval.ms")),
            (self.write_high_watermarks, config.get_int("replica.high.watermark.checkpoint.interval.ms")),
            (self.forget_idle_producers, config.get_int("producer.id.expiration.check.interval.ms")),
        )
        flush_check = min(_FLUSH_CHECK_SECONDS, _seconds(config.get_int("log.flush.scheduler.interval.ms")))
        async with trio.open_nursery() as nursery:
            for chore, interval_ms in chores:
                seconds = _seconds(interval_ms)
                nursery.start_soon(_every, seconds, chore, min(seconds, first_ms / 1000))
            nursery.start_soon(_every, flush_check, self.flush_due_logs)
            nursery.start_soon(_every, _PURGE_CHECK_SECONDS, self.purge)
            nursery.start_soon(_every, _SNAPSHOT_CHECK_SECONDS, self._broker.write_metadata_snapshot_if_due)
            nursery.start_soon(_every, _GARBAGE_SECONDS, _look_through_garbage)

    async def enforce_retention(self) -> None:
        """Delete old segments, and their files after file.delete.delay.ms."""
        now_ms = self._broker.now_ms()
        async with Turns() as turns:
            for partition in list(self._broker.partitions):
                while self._delete_old_segments(partition.log, now_ms) == SEGMENTS_AT_ONCE:
                    await turns.rest()
                await turns.rest()

    def _delete_old_segments(self, each: Log, now_ms: int) -> int:
        if each.is_closed or self._broker.cleaner.is_cleaning(each):
            return 0
        try:
            return each.delete_old_segments(now_ms)
        except KafkaError as error:
            log.error("retention failed partition=%s error=%s", each.name, error)
            return 0

    async def forget_idle_producers(self) -> None:
        """Drop the state of producers idle for producer.id.expiration.ms."""
        now_ms = self._broker.now_ms()
        expiration_ms = self._broker.config.get_int("producer.id.expiration.ms")

        def forget(partition: Partition) -> None:
            producers = partition.log.producers
            producers.expiration_ms = expiration_ms
            producers.remove_expired(now_ms)

        await self._for_each_partition(forget)

    async def _for_each_partition(self, act: Callable[[Partition], None]) -> None:
        """Those whose logs are in use, in turns with clients."""

        def act_if_open(partition: Partition) -> None:
            if not partition.log.is_closed:
                act(partition)

        await map_in_turns(act_if_open, list(self._broker.partitions))

    async def purge(self) -> None:
        """Remove the files of deleted segments and topics whose file.delete.delay.ms has passed."""
        now_ms = self._broker.now_ms()
        due = [
            directory.purge_deleted
            for directory in self._broker.logs.directories
            if directory.has_deleted_partitions
        ]

        def look(partition: Partition) -> None:
            if partition.log.deleted_files:
                due.append(partition.log.purge_deleted_files)

        await self._for_each_partition(look)
        for remove in due:
            await trio.to_thread.run_sync(remove, now_ms)

    async def write_recovery_points(self) -> None:
        """Write down up to where each log is on the disk."""
        for directory in self._broker.logs.directories:
            await trio.to_thread.run_sync(directory.write_recovery_points)

    async def write_log_starts(self) -> None:
        """Write down where each log begins."""
        for directory in self._broker.logs.directories:
            await trio.to_thread.run_sync(directory.write_log_start_offsets)

    async def write_high_watermarks(self) -> None:
        """Write down what consumers may see of each log."""
        for directory in self._broker.logs.directories:
            await trio.to_thread.run_sync(directory.write_high_watermarks)

    async def flush_due_logs(self) -> None:
        """fsync rolled segments, and logs whose flush.ms has passed."""
        now_ms = self._broker.now_ms()
        due: list[Log] = []

        def look(partition: Partition) -> None:
            each = partition.log
            if not each.unflushed_messages:
                partition.flushed_ms = now_ms
            elif each.has_unflushed_segments or now_ms - partition.flushed_ms >= each.config.flush_ms:
                partition.flushed_ms = now_ms
                due.append(each)

        await self._for_each_partition(look)
        if due:
            await trio.to_thread.run_sync(flush_logs, due)


async def _look_through_garbage() -> None:
    look_through()


def _seconds(interval_ms: int) -> float:
    return max(interval_ms, 1) / 1000


async def _every(
    seconds: float, chore: Callable[[], Awaitable[None]], first_after_seconds: float | None = None
) -> None:
    await trio.sleep(seconds if first_after_seconds is None else first_after_seconds)
    while True:
        await _attempt(chore)
        await trio.sleep(seconds)


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
