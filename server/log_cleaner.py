"""Compaction in the background: choose the dirtiest log, have it cleaned by another process, swap in what it made.

There are log.cleaner.threads workers, each with a process of its own while it has something to do and for a minute
after. A worker that finds nothing dirty enough looks again after log.cleaner.backoff.ms. A log whose records turn out
to be damaged is marked as uncleanable, told once, and left alone until the broker is started again; it still serves. A
disk that refuses takes its log directory offline, as it does when it refuses anybody else.
"""

from __future__ import annotations

import errno
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

import trio

from ottla.log_store.compaction.cleaner import remove_leftovers
from ottla.log_store.compaction.job import CleanedGroup, CleaningFailed, CleaningResult
from ottla.log_store.compaction.log_cleaning import CleaningResources, DirtyLog, dirtiest, look_at
from ottla.log_store.compaction.swap import SegmentSwap
from ottla.log_store.deletion import SEGMENTS_AT_ONCE
from ottla.log_store.durability import failed
from ottla.log_store.log import Log
from ottla.server.cleaner_process import CleanerDied, CleanerProcess
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_KEEP_PROCESS_SECONDS = 60  # a start takes longer than cleaning what a busy topic has gathered in a minute
_LOGS_BETWEEN_YIELDS = 200
_MB = 1_000_000


class LogCleaner:
    """The workers and what they know of the logs."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._cleaning: set[Log] = set()
        self._uncleanable: set[Log] = set()
        self._workers = 0

    def is_cleaning(self, each: Log) -> bool:
        """Whether a worker is at a log; retention keeps away from it so long, and is done after it."""
        return each in self._cleaning

    async def run(self) -> None:
        """Keep as many workers as configured until cancelled."""
        if not self._broker.config.get_bool("log.cleaner.enable"):
            return
        async with trio.open_nursery() as nursery:
            while True:
                while self._workers < self._wanted_workers:
                    nursery.start_soon(self._work, self._workers)
                    self._workers += 1
                await trio.sleep(self._backoff_seconds)

    @property
    def _wanted_workers(self) -> int:
        return self._broker.config.get_int("log.cleaner.threads")

    @property
    def _backoff_seconds(self) -> float:
        # Zero is allowed, and must not keep the loop busy.
        return max(self._broker.config.get_int("log.cleaner.backoff.ms") / 1000, 0.01)

    async def _work(self, number: int) -> None:
        async with CleanerProcess() as process:
            idle_since = trio.current_time()
            while number < self._wanted_workers:
                if await self._clean_dirtiest(process):
                    idle_since = trio.current_time()
                    continue
                if trio.current_time() >= idle_since + _KEEP_PROCESS_SECONDS:
                    await process.end()
                await trio.sleep(self._backoff_seconds)
        self._workers -= 1

    async def _clean_dirtiest(self, process: CleanerProcess) -> bool:
        """Clean what needs it most; False if nothing was cleaned. A bug is told, and does not end the broker."""
        dirty = None
        try:
            dirty = await self.choose()
            return dirty is not None and await self.clean(dirty, process)
        except Exception:
            log.exception("cleaning failed")
            if dirty is not None:
                self._set_aside(dirty.log, "of a bug")
            return False

    async def choose(self) -> DirtyLog | None:
        """The dirtiest of the logs that are due and that nobody is at."""
        now_ms = self._broker.now_ms()
        found = []
        for count, partition in enumerate(list(self._broker.partitions), 1):
            if count % _LOGS_BETWEEN_YIELDS == 0:
                await trio.lowlevel.checkpoint()
            each = partition.log
            if each.config.is_compacted and each not in self._cleaning and each not in self._uncleanable:
                try:
                    dirty = look_at(each, now_ms)
                except (KafkaError, OSError) as error:
                    self._set_aside(each, str(error))
                    continue
                if dirty is not None:
                    found.append(dirty)
        self._uncleanable = {each for each in self._uncleanable if not each.is_closed}
        return dirtiest(found)

    async def clean(self, dirty: DirtyLog, process: CleanerProcess) -> bool:
        """Have a log cleaned once, and take over what comes of it; False if that did not work out."""
        each = dirty.log
        directory = each.directory
        self._cleaning.add(each)
        done = False
        try:
            done = await self._clean(dirty, process)
        except CleanerDied as error:
            self._set_aside(each, f"the process that cleans died: {error}")
        finally:
            if not done:
                with trio.CancelScope(shield=True):
                    await process.end()
                    await trio.to_thread.run_sync(remove_leftovers, each.fs, directory)
            self._cleaning.discard(each)
        await self._delete_old_segments(each)
        return done

    async def _clean(self, dirty: DirtyLog, process: CleanerProcess) -> bool:
        each = dirty.log
        started = trio.current_time()
        job = dirty.job(self._broker.now_ms(), self._resources())
        async with aclosing(process.answers(job)) as answers:
            async for answer in answers:
                if each.is_closed or each.failure is not None:
                    return False
                if isinstance(answer, CleanedGroup):
                    # Half a swap would have to be finished by the next start.
                    with trio.CancelScope(shield=True):
                        if not await self._swap(each, answer):
                            return False
                elif isinstance(answer, CleaningResult):
                    each.cleaner_checkpoint = answer.end_offset
                    await trio.to_thread.run_sync(self._broker.logs.write_cleaner_offsets, each)
                    _tell(dirty, answer, trio.current_time() - started)
                    return True
                else:
                    self._failed(each, answer)
        return False

    async def _swap(self, each: Log, group: CleanedGroup) -> bool:
        swap = SegmentSwap(each, group.replaced)
        try:
            await trio.to_thread.run_sync(swap.prepare)
            if not swap.install(self._broker.now_ms()):
                log.info("cleaning given up since segments were deleted partition=%s", each.name)
                return False
            await trio.to_thread.run_sync(swap.retire)
            swap.complete()
        except OSError as error:
            if (
                not each.is_closed
            ):  # the files do not agree with what the log reads: only a start sets that right
                failed(each, "swap of cleaned segments", error)
            return False
        return True

    async def _delete_old_segments(self, each: Log) -> None:
        """What retention left out while the log was being cleaned."""
        try:
            while not each.is_closed and each.failure is None:
                if each.delete_old_segments(self._broker.now_ms()) < SEGMENTS_AT_ONCE:
                    break
                await trio.lowlevel.checkpoint()
        except KafkaError as error:
            log.error("retention failed partition=%s error=%s", each.name, error)

    def _failed(self, each: Log, answer: CleaningFailed) -> None:
        if answer.errno is None:
            self._set_aside(each, answer.reason)
        elif answer.errno == errno.ENOENT:  # records were deleted meanwhile, and their segments with them
            log.info("cleaning given up partition=%s error=%s", each.name, answer.reason)
        else:
            log.error("cleaning failed partition=%s error=%s", each.name, answer.reason)
            failed(each, "cleaning", OSError(answer.errno, answer.reason))

    def _set_aside(self, each: Log, reason: str) -> None:
        self._uncleanable.add(each)
        log.error("partition is not compacted any more partition=%s error=%s", each.name, reason)

    def _resources(self) -> CleaningResources:
        config = self._broker.config
        workers = max(self._wanted_workers, 1)
        return CleaningResources(
            key_map_bytes=config.get_int("log.cleaner.dedupe.buffer.size") // workers,
            load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
            buffer_bytes=max(config.get_int("log.cleaner.io.buffer.size") // workers // 2, 1),
            max_bytes_per_second=config.get_float("log.cleaner.io.max.bytes.per.second") / workers,
        )


def _tell(dirty: DirtyLog, result: CleaningResult, seconds: float) -> None:
    log.info(
        "log cleaned partition=%s from=%d to=%d read_mb=%.1f written_mb=%.1f keys=%d seconds=%.2f mb_per_second=%.0f",
        dirty.log.name,
        dirty.offsets.first_dirty_offset,
        result.end_offset,
        result.read_bytes / _MB,
        result.written_bytes / _MB,
        result.keys,
        seconds,
        result.read_bytes / _MB / max(seconds, 0.001),
    )
