"""Opening a log that lies on the disk.

After a clean stop the files are trusted: the end of each segment is found by walking the few batches behind
its last index entry, the producers come from the snapshot. Otherwise every segment from the recovery point on
is read (see scan), what follows the last valid batch is cut off, and indexes, leader epochs and producers are
made anew. Segments below the recovery point are read only if an index of theirs is missing or impossible.

A log that is damaged in its middle is refused with DamagedLog and left as it is: cutting it there would throw
away what may be the only copy of valid batches, and serving it would skip records without a word.

What an interrupted deletion or compaction left is settled first: `.deleted` and `.cleaned` files go, `.swap`
files, whose data is complete, take the place of the segments they replace.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right

from ottla.log_store.checkpoints import CorruptCheckpoint
from ottla.log_store.files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    FileSystem,
    offset_name,
    offset_of_name,
    unlink_if_there,
)
from ottla.log_store.index_file import CorruptIndex
from ottla.log_store.log import Log
from ottla.log_store.partition_metadata import (
    FILE_NAME as PARTITION_METADATA,
)
from ottla.log_store.partition_metadata import (
    CorruptPartitionMetadata,
    read_partition_metadata,
)
from ottla.log_store.producer_replay import rebuild_producers
from ottla.log_store.scan import Scan, damage_after, scan_segment
from ottla.log_store.segment import Segment, base_offset_of
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import CorruptBatch
from ottla.wire.uuids import Uuid

logger = logging.getLogger("ottla.log_store")

_KRAFT_SNAPSHOT_DELETED = ".checkpoint" + DELETED_SUFFIX  # belongs to the metadata log, which looks after it


class DamagedLog(Exception):
    """A log that is damaged below its end, so that somebody has to decide about it."""


def load(
    log: Log,
    *,
    clean: bool,
    topic_id: Uuid | None,
    log_start_offset: int,
    recovery_point: int,
    now_ms: int,
) -> None:
    """Fill a Log from its directory."""
    names = _settle_interrupted_work(log, sorted(os.listdir(log.directory)), now_ms)
    _load_topic_id(log, topic_id)
    _load_leader_epochs(log)
    log.producers.found_snapshots(
        offset_of_name(name) for name in names if name.endswith(SNAPSHOT_SUFFIX) and name[0].isdigit()
    )
    _load_segments(log, names, now_ms)
    log.log_start_offset = log_start_offset
    if log.segments:
        _leave_out_before_log_start(log, log_start_offset)
        log.log_start_offset = max(log_start_offset, log.segments[0].base_offset)
        first = _first_to_scan(log, clean=clean, recovery_point=recovery_point)
        trusted = first is None
        if first is not None:
            _recover(log, first, recovery_point, now_ms)
        log.log_end_offset = log.segments[-1].next_offset()[0]
    end = log.log_end_offset if log.segments else log_start_offset
    if log.log_start_offset <= end < recovery_point:
        raise DamagedLog(
            f"{log.directory} ends at offset {end}, but it was on the disk up to {recovery_point}"
        )
    if not log.segments or log.log_end_offset < log.log_start_offset:
        if log.segments:
            logger.warning("log ends before it starts and is emptied partition=%s", log.name)
        log.start_at(log_start_offset, now_ms)
        return
    log.segments[-1].offset_index.reopen_for_append()
    log.segments[-1].time_index.reopen_for_append()
    log.names_changed = not trusted
    log.leader_epochs.truncate_from_end(log.log_end_offset)
    log.leader_epochs.truncate_from_start(log.log_start_offset)
    log.recovery_point = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
    _load_producers(log, trusted, now_ms)
    log.configure(log.segments[-1])


def _leave_out_before_log_start(log: Log, log_start_offset: int) -> None:
    """Segments that were still to be deleted: nobody reads them, and they may never have been flushed, so that they say
    nothing about what is lost."""
    count = log.slot_of(log_start_offset)
    if count:
        removed, log.segments = log.segments[:count], log.segments[count:]
        log.remove_segments(removed)


def _load_producers(log: Log, trusted: bool, now_ms: int) -> None:
    producers = log.producers
    if not trusted:
        producers.map_end_offset = log.log_end_offset
        producers.take_snapshot(sync=False)
        return
    producers.remove_stray_snapshots(segment.base_offset for segment in log.segments)
    if producers.snapshot_offsets:
        rebuild_producers(log, now_ms)
    else:  # a clean stop writes a snapshot, unless nothing was ever written: there are no producers
        producers.map_end_offset = log.log_end_offset
        producers.take_snapshot(sync=False)


def _first_to_scan(log: Log, *, clean: bool, recovery_point: int) -> int | None:
    """The first segment that must be read: the one of the recovery point if the stop was not clean, or an
    earlier one whose index is gone or damaged; None if all can be trusted as they are."""
    segments = log.segments
    first = None if clean else max(0, bisect_right(segments, recovery_point, key=base_offset_of) - 1)
    for slot, segment in enumerate(segments[:first]):
        following = segments[slot + 1].base_offset if slot + 1 < len(segments) else None
        try:
            _check_unread(segment, following)
        except (CorruptIndex, CorruptBatch) as error:
            logger.warning("segment is read in spite of its age partition=%s reason=%s", log.name, error)
            return slot
    return first


def _check_unread(segment: Segment, following: int | None) -> None:
    """Whether the files of a segment that is not read can belong together; CorruptIndex or CorruptBatch if
    not. What lies behind the last index entry is walked, so a file that was cut short is noticed."""
    if not segment.size:
        return
    for index in (segment.offset_index, segment.time_index):
        if not index.entries and not os.path.exists(index.path):
            raise CorruptIndex(f"{index.path} is missing")
    segment.offset_index.check(segment.size)
    segment.time_index.check()
    segment.txn_index.check()
    next_offset, end = segment.next_offset()
    if end != segment.size:
        raise CorruptBatch(f"{segment.file.path} has {segment.size - end} bytes behind its last batch")
    if following is not None and next_offset > following:
        raise CorruptBatch(f"{segment.file.path} goes on to {next_offset}, beyond the next segment")


def _recover(log: Log, first: int, recovery_point: int, now_ms: int) -> None:
    """Read and check the segments from `first` on, and end the log where they stop being valid."""
    segments = log.segments
    producers = log.producers
    log.log_end_offset = segments[first].base_offset
    rebuild_producers(log, now_ms)
    for slot in range(first, len(segments)):
        segment = segments[slot]
        producers.map_end_offset = segment.base_offset
        producers.take_snapshot(sync=False)
        scan = scan_segment(log, segment)
        if scan.problem is not None:
            _cut(log, slot, scan, recovery_point)
            return
        if slot + 1 < len(segments):
            segment.become_inactive()
            _tell_gap(log, scan.next_offset, segments[slot + 1].base_offset)


def _tell_gap(log: Log, end_offset: int, following: int) -> None:
    """Whole batches can be missing at the end of a segment that was not flushed when the machine went down. What
    follows is served, as in Kafka: compaction leaves such gaps too, and nothing tells the two apart for sure."""
    if end_offset < following and "compact" not in log.config.cleanup_policy:
        logger.warning("records are missing partition=%s from=%d to=%d", log.name, end_offset, following - 1)


def _cut(log: Log, slot: int, scan: Scan, recovery_point: int) -> None:
    """End the log at the last valid batch, unless that would hide damage: what was known to be on the disk
    cannot have been lost by a crash, and neither can a batch behind which others are valid."""
    segment = log.segments[slot]
    if scan.next_offset < recovery_point and log.log_start_offset < recovery_point:
        raise DamagedLog(
            f"{segment.file.path} is damaged at byte {scan.valid_bytes}: {scan.problem}, but the log was on the "
            f"disk up to offset {recovery_point}"
        )
    damage = damage_after(log, slot, scan)
    if damage is not None:
        raise DamagedLog(damage)
    removed = log.segments[slot + 1 :]
    logger.warning(
        "log cut at its last valid batch partition=%s end_offset=%d bytes=%d later_segments=%d reason=%s",
        log.name,
        scan.next_offset,
        segment.size - scan.valid_bytes,
        len(removed),
        scan.problem,
    )
    segment.file.truncate(scan.valid_bytes)
    del log.segments[slot + 1 :]
    log.remove_segments(removed)


def _load_segments(log: Log, names: list[str], now_ms: int) -> None:
    bases = {offset_of_name(name) for name in names if name.endswith(LOG_SUFFIX)}
    for name in names:
        if name.endswith(INDEX_SUFFIXES) and offset_of_name(name) not in bases:
            logger.warning("index without a log removed partition=%s file=%s", log.name, name)
            unlink_if_there(log.fs, log.path_of(name))
    index_bytes = log.config.segment_index_bytes
    log.segments = [
        Segment.open(log.fs, log.directory, base, index_bytes=index_bytes, now_ms=now_ms)
        for base in sorted(bases)
    ]


def _load_topic_id(log: Log, topic_id: Uuid | None) -> None:
    try:
        log.topic_id = read_partition_metadata(log.path_of(PARTITION_METADATA))
    except CorruptPartitionMetadata as error:
        logger.warning("topic id is unreadable partition=%s error=%s", log.name, error)
    if topic_id is None or log.topic_id == topic_id:
        return
    if log.topic_id is not None:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"The directory {log.directory} belongs to another topic id."
        )
    log.assign_topic_id(topic_id)


def _load_leader_epochs(log: Log) -> None:
    try:
        log.leader_epochs.load()
    except CorruptCheckpoint as error:
        logger.warning("leader epochs are unreadable partition=%s error=%s", log.name, error)
        log.leader_epochs.clear()


def _settle_interrupted_work(log: Log, names: list[str], now_ms: int) -> list[str]:
    """Finish or undo what was going on when the broker stopped; returns the names that are left."""
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    deleted = [
        name for name in names if name.endswith(DELETED_SUFFIX) and not name.endswith(_KRAFT_SNAPSHOT_DELETED)
    ]
    if not (cleaned or swaps or deleted):
        return names
    first_cleaned = min(map(offset_of_name, cleaned), default=None)
    if first_cleaned is not None:  # not all were renamed yet: the replacement did not happen
        undone = [name for name in swaps if offset_of_name(name) >= first_cleaned]
        swaps = [name for name in swaps if name not in undone]
        cleaned += undone
    for name in cleaned + deleted:
        unlink_if_there(log.fs, log.path_of(name))
    if swaps:
        _finish_swaps(log, swaps, now_ms)
    return sorted(os.listdir(log.directory))


def _finish_swaps(log: Log, swaps: list[str], now_ms: int) -> None:
    """Put `.swap` segments in the place of those whose offsets they cover."""
    ends = []
    for name in swaps:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            base = offset_of_name(name)
            path = log.path_of(name)
            ends.append((base, _end_offset_of(log, path, base, now_ms)))
    first = min((base for base, _ in ends), default=0)
    last = max((end for _, end in ends), default=0)
    for name in os.listdir(log.directory):
        is_segment_file = name.endswith((LOG_SUFFIX, *INDEX_SUFFIXES, SNAPSHOT_SUFFIX)) and name[0].isdigit()
        if is_segment_file and first <= offset_of_name(name) < last:
            unlink_if_there(log.fs, log.path_of(name))
    for name in swaps:
        path = log.path_of(name)
        log.fs.rename(path, path.removesuffix(SWAP_SUFFIX))


def _end_offset_of(log: Log, path: str, base_offset: int, now_ms: int) -> int:
    """The end of a segment that does not have its final name yet."""
    from ottla.log_store.files import LogFile
    from ottla.log_store.offset_index import OffsetIndex
    from ottla.log_store.time_index import TimeIndex
    from ottla.log_store.txn_index import TxnIndex

    index = OffsetIndex(log.fs, path + OFFSET_INDEX_SUFFIX, base_offset, 0, 0)
    time_index = TimeIndex(log.fs, path, base_offset, 0, 0)
    txn_index = TxnIndex(log.fs, path, base_offset, exists=False)
    segment = Segment(LogFile.open(log.fs, path), (index, time_index, txn_index), base_offset, now_ms)
    return segment.next_offset()[0]


def remove_segment_files(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Remove every file of a segment."""
    stem = os.path.join(directory, offset_name(base_offset))
    for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
        unlink_if_there(fs, stem + suffix)
