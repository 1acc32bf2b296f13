"""The log of one partition: record batches with ascending offsets in segments, and what is known about them.

Offsets:  log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset. Below the start lies
what was deleted, below the high watermark what consumers may see, and the end is what the next batch gets.

Everything runs in the caller's thread and waits for nothing but the page cache. Only `flush` and
`purge_deleted_files` are slow; they may run in a worker thread while the log goes on. An append is written
whole or not at all, and changes nothing else before it is written.
"""

from __future__ import annotations

import logging
import os
import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ottla.config.topic_config import TopicConfig
from ottla.log_store import deletion, durability, partition_metadata, reads, timestamps
from ottla.log_store.appends import AppendResult, append_batches, repeated
from ottla.log_store.deletion import DeletedFile
from ottla.log_store.durability import failed, failing
from ottla.log_store.files import OS_FILE_SYSTEM, FileSystem
from ottla.log_store.leader_epochs import UNDEFINED_EPOCH, LeaderEpochs
from ottla.log_store.naming import parse_partition_directory
from ottla.log_store.producer_state import PRODUCER_ID_EXPIRATION_MS, ProducerState, keep_window
from ottla.log_store.producer_window import refill_window
from ottla.log_store.reads import NOTHING, ReadResult
from ottla.log_store.segment import Segment, base_offset_of
from ottla.log_store.timestamps import Step, TimestampOffset
from ottla.log_store.txn_index import AbortedTxn
from ottla.log_store.validation import (
    AppendOrigin,
    prepare_client_batch,
    rules_of,
    stamp,
)
from ottla.log_store.verification import NOT_REQUIRED, Verification
from ottla.wire.chunks import FileSlice
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import BatchView, patch
from ottla.wire.uuids import Uuid

logger = logging.getLogger("ottla.log_store")

CLIENT = AppendOrigin.CLIENT


class Log:
    """One partition. `create` and `open` (in recovery) make it."""

    def __init__(
        self,
        directory: str,
        config: TopicConfig,
        *,
        fs: FileSystem = OS_FILE_SYSTEM,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.topic, self.partition = parse_partition_directory(os.path.basename(directory))
        self.topic_id: Uuid | None = None
        self.segments: list[Segment] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.cleaner_checkpoint: int | None = None  # how far compaction came
        self.leader_epochs = LeaderEpochs(fs, self.path_of("leader-epoch-checkpoint"))
        self.producers = ProducerState(fs, directory, producer_id_expiration_ms)
        self.producers.refill_window = partial(refill_window, self)
        self.deleted_files: list[DeletedFile] = []
        self.is_closed = False
        self.failure: OSError | None = None
        self.on_failure: Callable[[OSError], None] = lambda error: None
        self.flushing = threading.Lock()
        self.truncations = 0  # how often the end was cut off, which a flush must notice
        self.names_changed = True  # files came or went since the directory was synced
        self.unflushed_files: list[str] = []
        self.update_config(config)

    @classmethod
    def create(
        cls,
        directory: Path | str,
        topic_id: Uuid,
        config: TopicConfig,
        *,
        now_ms: int,
        fs: FileSystem = OS_FILE_SYSTEM,
        log_start_offset: int = 0,
        leader_epoch: int = UNDEFINED_EPOCH,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> Log:
        """A new log in a new directory, named `topic-partition`, that begins with the leader's epoch if it is known."""
        path = os.fspath(directory)
        fs.mkdir(path)
        log = cls(path, config, fs=fs, producer_id_expiration_ms=producer_id_expiration_ms)
        log.assign_topic_id(topic_id)
        log.start_at(log_start_offset, now_ms)
        log.leader_epochs.create(leader_epoch, log_start_offset)
        return log

    @classmethod
    def open(
        cls,
        directory: Path | str,
        config: TopicConfig,
        *,
        now_ms: int,
        clean: bool,
        topic_id: Uuid | None = None,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        high_watermark: int = 0,
        fs: FileSystem = OS_FILE_SYSTEM,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> Log:
        """The log that lies in `directory`, recovered from `recovery_point` on unless the stop was clean."""
        from ottla.log_store.recovery import load

        log = cls(os.fspath(directory), config, fs=fs, producer_id_expiration_ms=producer_id_expiration_ms)
        load(
            log,
            clean=clean,
            topic_id=topic_id,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            now_ms=now_ms,
        )
        log.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        log.producers.advance_high_watermark(log.high_watermark)
        return log

    # ---- facts

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def active_segment(self) -> Segment:
        return self.segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: the first offset of an undecided transaction, or the high watermark."""
        unstable = self.producers.first_unstable_offset
        if unstable is not None and unstable < self.high_watermark:
            return max(unstable, self.log_start_offset)
        return self.high_watermark

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a rolled segment waits for a flush; the server flushes those in the background."""
        return self.recovery_point < self.segments[-1].base_offset

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def path_of(self, file_name: str) -> str:
        return os.path.join(self.directory, file_name)

    def update_config(self, config: TopicConfig) -> None:
        """Go by another config from the next append on."""
        self.config = config
        self.rules = rules_of(config)
        self.segment_bytes = config.max_segment_bytes
        self.segment_ms = config.max_segment_ms
        self.flush_messages = config.flush_messages
        for segment in self.segments[-1:]:
            self.configure(segment)

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Write down which topic the directory belongs to."""
        path = self.path_of(partition_metadata.FILE_NAME)
        partition_metadata.write_partition_metadata(self.fs, path, topic_id, sync=False)
        self.unflushed_files.append(path)
        self.topic_id = topic_id

    # ---- append

    def append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append what a client (exactly one batch), a coordinator or a leader sent. The buffer must be
        writable: offsets and leader epoch are put into it. KafkaError if it may not be appended."""
        if self.failure is not None:
            durability.check_usable(self)
        if origin is not CLIENT:
            return append_batches(
                self,
                records,
                leader_epoch=leader_epoch,
                now_ms=now_ms,
                origin=origin,
                transaction_version=transaction_version,
            )
        return self.append_prepared(prepare_client_batch(records, self.rules, now_ms), leader_epoch, now_ms)

    def append_prepared(
        self,
        batch: BatchView,
        leader_epoch: int,
        now_ms: int,
        verification: Verification | None = NOT_REQUIRED,
    ) -> AppendResult:
        """Append a client's batch that `prepare_client_batch` made of what was sent."""
        if self.failure is not None:
            durability.check_usable(self)
        rules = self.rules
        producers = self.producers
        has_producer = batch.producer_id >= 0
        begin = batch.producer_id, batch.producer_epoch, batch.base_sequence
        ordinary = producers.next_of(*begin, is_transactional=batch.is_transactional)
        if has_producer and ordinary is None:
            duplicate = producers.duplicate_of(batch)
            if duplicate is not None:
                return repeated(self, duplicate)
            producers.check_client_batch(batch, verification)
        if batch.buf.readonly:
            batch = BatchView(memoryview(bytearray(batch.data)))
        max_timestamp = batch.max_timestamp
        if rules.append_time or batch.attributes & 0x08:
            max_timestamp = stamp(batch, rules, now_ms)
        size = batch.batch_length + 12
        base_offset = self.log_end_offset
        last_offset = base_offset + batch.last_offset_delta
        segment = self.segment_for(size, last_offset, max_timestamp, now_ms)
        epochs = self.leader_epochs
        if leader_epoch != epochs.latest_epoch or epochs.is_unwritten:
            self.assign_epoch(leader_epoch, base_offset)
        buf = batch.buf
        patch(buf, 0, base_offset, leader_epoch)
        try:
            segment.append(buf if len(buf) == size else buf[:size], base_offset, last_offset, max_timestamp)
        except OSError as error:
            raise failed(self, "append", error) from error
        self.log_end_offset = end_offset = last_offset + 1
        if ordinary is not None:
            ordinary.add_next(
                batch.base_sequence, batch.last_sequence, base_offset, last_offset, max_timestamp
            )
        elif has_producer:
            producers.commit_client_batch(batch, base_offset, max_timestamp)
        producers.map_end_offset = end_offset
        return AppendResult(
            base_offset,
            last_offset,
            now_ms if rules.append_time else -1,
            self.log_start_offset,
            False,
            end_offset - self.recovery_point >= self.flush_messages,
        )

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        with failing(self, "leader epoch"):
            self.leader_epochs.assign(leader_epoch, start_offset)

    def segment_for(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """The segment that takes an append of `size` bytes, rolled if the active one should not."""
        segment = self.segments[-1]
        segment_size = segment.file.size
        if size > self.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit into a segment of segment.bytes={self.segment_bytes}.",
            )
        if (
            segment_size + size > self.segment_bytes
            or segment.offset_index.is_full
            or segment.time_index.is_full
            or last_offset - segment.base_offset > 0x7FFFFFFF
            or (
                segment_size
                and segment.waited_for_roll_ms(now_ms, max_timestamp)
                > self.segment_ms - segment.roll_jitter_ms
            )
        ):
            return self.roll(now_ms)
        return segment

    # ---- segments

    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log; an empty active segment stays."""
        base_offset = self.log_end_offset
        active = self.segments[-1]
        if active.base_offset == base_offset:
            return active
        with failing(self, "roll"):
            active.become_inactive()
            segment = self._new_segment(base_offset, now_ms)
            self.producers.map_end_offset = base_offset
            snapshot = self.producers.take_snapshot(sync=False)
        if snapshot is not None:
            self.unflushed_files.append(self.producers.snapshot_path(snapshot))
        self.segments.append(segment)
        logger.debug("segment rolled partition=%s base_offset=%d", self.name, base_offset)
        return segment

    def start_at(self, offset: int, now_ms: int) -> None:
        """Make the log empty, to begin at `offset`."""
        self.truncations += 1
        self.remove_segments(self.segments)
        self.segments = [self._new_segment(offset, now_ms)]
        self.log_start_offset = self.log_end_offset = self.high_watermark = self.recovery_point = offset
        self.cleaner_checkpoint = None
        self.producers.truncate_fully(offset)
        if self.leader_epochs.entries:
            self.leader_epochs.clear()

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        from ottla.log_store.recovery import remove_segment_files

        config = self.config
        preallocate = self.segment_bytes if config.preallocate else 0
        for attempt in (0, 1):
            try:
                segment = Segment.create(
                    self.fs,
                    self.directory,
                    base_offset,
                    index_bytes=config.segment_index_bytes,
                    now_ms=now_ms,
                    preallocate=preallocate,
                )
                break
            except FileExistsError:  # left there by a roll that failed half way
                if attempt:
                    raise
                remove_segment_files(self.fs, self.directory, base_offset)
        self.names_changed = True
        self.configure(segment)
        return segment

    def configure(self, segment: Segment) -> None:
        segment.index_interval_bytes = self.config.index_interval_bytes
        jitter = min(self.config.segment_jitter_ms, self.segment_ms)
        segment.roll_jitter_ms = random.randrange(jitter) if jitter > 0 else 0

    def remove_segments(self, segments: list[Segment]) -> None:
        """Take the files of segments that have left the log out of use."""
        deletion.remove_segments(self, segments)

    def purge_deleted_files(self, now_ms: int | None = None) -> int:
        """Remove the files of deleted segments that are due (all of them if `now_ms` is None); may run in a
        worker thread. Returns how many."""
        return deletion.purge_deleted_files(self, now_ms)

    # ---- read

    def read(
        self, offset: int, max_bytes: int, *, upto: int, at_least_one: bool, only_cached: bool = False
    ) -> ReadResult:
        """The batches from the one that holds `offset`, as far as `max_bytes` and its segment reach, and none
        that holds `upto` or more. The last one may be cut off. With `at_least_one` the first batch is whole
        even if it is larger. Raises NotInMemory if only what is in memory is to be looked at to find them."""
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is not in {self.name}, which holds {self.log_start_offset} to "
                f"{self.log_end_offset}.",
            )
        if offset >= upto:
            return NOTHING
        if self.failure is not None:
            durability.check_usable(self)
        try:
            return self._read(offset, max_bytes, upto, at_least_one, only_cached)
        except OSError as error:
            raise failed(self, "read", error) from error

    def _read(
        self, offset: int, max_bytes: int, upto: int, at_least_one: bool, only_cached: bool
    ) -> ReadResult:
        segments = self.segments
        slot = len(segments) - 1
        if offset < segments[slot].base_offset:
            slot = self.slot_of(offset)
        while slot < len(segments):
            segment = segments[slot]
            found = segment.find(offset, only_cached=only_cached)
            if found is not None:
                break
            slot += 1
        else:
            return NOTHING
        position, first_size = found
        end = segment.file.size
        if upto < self.log_end_offset and (
            slot + 1 == len(segments) or upto < segments[slot + 1].base_offset
        ):
            limit = segment.find(upto, only_cached=only_cached)
            if limit is not None:
                end = limit.position
        if max_bytes < first_size:
            if not at_least_one:
                return NOTHING
            max_bytes = first_size
        length = min(end - position, max_bytes)
        if length <= 0:
            return NOTHING
        return ReadResult(FileSlice(segment.file, position, length), segment.base_offset, position)

    def aborted_transactions(self, offset: int, result: ReadResult) -> list[AbortedTxn]:
        """The aborted transactions a read_committed consumer must leave out of what `read` gave it."""
        return reads.aborted_transactions(self, offset, result)

    def slot_of(self, offset: int) -> int:
        return max(0, bisect_right(self.segments, offset, key=base_offset_of) - 1)

    def steps_by_time(self, timestamp: int | None, *, only_cached: bool = False) -> Iterator[Step]:
        """The way to the first record at or after `timestamp`, or with the greatest one of all (None)."""
        with failing(self, "read"):
            segments: list[Segment] | None = None
            while segments is not self.segments:
                segments = self.segments
                if timestamp is None:
                    way = timestamps.greatest(segments, only_cached)
                else:
                    way = timestamps.at_or_after(segments, timestamp, self.log_start_offset, only_cached)
                if (yield from way):
                    break

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is at or after `timestamp`."""
        return timestamps.first_found(self.steps_by_time(timestamp))

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp."""
        return timestamps.first_found(self.steps_by_time(None))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch at or below `epoch`; (-1, -1) if that is not known."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # ---- offsets that move

    def advance_high_watermark(self, offset: int) -> bool:
        """Let consumers see everything below `offset`; True if that is more than before."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.advance_high_watermark(offset)
        return True

    def delete_records_before(self, offset: int) -> int:
        """Delete the records below `offset` (-1: the high watermark), few segments at a time; returns the log start."""
        with failing(self, "delete"):
            return deletion.delete_records_before(self, offset)

    def delete_old_segments(self, now_ms: int) -> int:
        """Delete what retention.ms, retention.bytes and the log start allow, at most SEGMENTS_AT_ONCE; returns how many
        segments."""
        with failing(self, "delete"):
            return deletion.delete_old_segments(self, now_ms)

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Remove everything from `offset` on; False if the log ends before."""
        with failing(self, "truncate"):
            return deletion.truncate_to(self, offset, now_ms)

    # ---- durability

    def flush(self) -> None:
        """Make everything up to the present end durable, and move the recovery point there. May run in a
        worker thread; what is appended meanwhile waits for the next flush."""
        durability.flush(self)

    def close(self) -> None:
        """Write the producer snapshot, trim the files and let go of them. The log is of no use after."""
        if self.is_closed:
            return
        self.is_closed = True
        self.producers.take_snapshot(sync=True)
        for segment in self.segments:
            segment.close()

    def release(self) -> None:
        """Let go of the files without writing: the log is being deleted, or its disk has failed."""
        self.is_closed = True
        # The other one leads back here: the log could only be found by a full collection.
        self.producers.refill_window = keep_window
        for segment in self.segments:
            segment.release()

    def __repr__(self) -> str:
        return (
            f"Log({self.name}, start={self.log_start_offset}, high_watermark={self.high_watermark}, "
            f"end={self.log_end_offset})"
        )
