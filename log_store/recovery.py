"""Opening a log that lies on the disk.

After a clean stop the files are trusted: the end of the log is found by walking the few batches behind the
last index entry, the producers come from the snapshot. Otherwise every segment from the recovery point on is
read, each batch checked, what follows the first bad or cut off batch is removed (also the segments behind
it), and indexes, leader epochs and producers are made anew from what is left.

What an interrupted deletion or compaction left is settled first: `.deleted` and `.cleaned` files go, `.swap`
files, whose data is complete, take the place of the segments they replace.
"""

from __future__ import annotations

import logging
import os

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
from ottla.log_store.segment import Segment
from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import BatchView, CorruptBatch
from ottla.wire.uuids import Uuid

logger = logging.getLogger("ottla.log_store")

_KRAFT_SNAPSHOT_DELETED = ".checkpoint" + DELETED_SUFFIX  # belongs to the metadata log, which looks after it


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
        log.log_start_offset = max(log_start_offset, log.segments[0].base_offset)
        trusted = clean and _files_agree(log)
        if not trusted:
            _recover(log, 0 if clean else recovery_point, now_ms)
        log.log_end_offset = log.segments[-1].next_offset()[0]
    if not log.segments or log.log_end_offset < log.log_start_offset:
        if log.segments:
            logger.warning("log ends before it starts and is emptied partition=%s", log.name)
        log.start_at(log_start_offset, now_ms)
        return
    log.segments[-1].offset_index.reopen_for_append()
    log.segments[-1].time_index.reopen_for_append()
    log.leader_epochs.truncate_from_end(log.log_end_offset)
    log.leader_epochs.truncate_from_start(log.log_start_offset)
    log.recovery_point = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
    _load_producers(log, trusted, now_ms)
    log.update_config(log.config)


def _load_producers(log: Log, trusted: bool, now_ms: int) -> None:
    producers = log.producers
    if not trusted:
        producers.map_end_offset = log.log_end_offset
        producers.take_snapshot(sync=False)
        return
    producers.remove_stray_snapshots(segment.base_offset for segment in log.segments)
    if producers.snapshot_offsets:
        log.rebuild_producers(now_ms)
    else:  # a clean stop writes a snapshot, unless nothing was ever written: there are no producers
        producers.map_end_offset = log.log_end_offset
        producers.take_snapshot(sync=False)


def _files_agree(log: Log) -> bool:
    """Whether the files of a cleanly stopped log can be trusted without reading them."""
    for segment in log.segments:
        for index in (segment.offset_index, segment.time_index):
            if segment.size and not os.path.exists(index.path):
                logger.warning("index is missing path=%s", index.path)
                return False
    try:
        last = log.segments[-1]
        last.offset_index.check()
        last.time_index.check()
        last.txn_index.check()
        return last.next_offset()[1] == last.size
    except (CorruptIndex, CorruptBatch) as error:
        logger.warning("log needs recovery in spite of a clean stop partition=%s error=%s", log.name, error)
        return False


def _recover(log: Log, recovery_point: int, now_ms: int) -> None:
    """Read and check every segment that may hold something after `recovery_point`."""
    segments = log.segments
    first = 0
    while first + 1 < len(segments) and segments[first + 1].base_offset <= recovery_point:
        first += 1
    producers = log.producers
    log.log_end_offset = segments[first].base_offset
    log.rebuild_producers(now_ms)
    for slot in range(first, len(segments)):
        segment = segments[slot]
        producers.map_end_offset = segment.base_offset
        producers.take_snapshot(sync=False)
        cut_bytes = _recover_segment(log, segment)
        if cut_bytes:
            logger.warning(
                "log cut during recovery partition=%s segment=%d bytes=%d",
                log.name,
                segment.base_offset,
                cut_bytes,
            )
            for lost in segments[slot + 1 :]:
                log.deleted_files += lost.mark_deleted()
            del segments[slot + 1 :]
            break
        if slot + 1 < len(segments):
            segment.become_inactive()


def _recover_segment(log: Log, segment: Segment) -> int:
    """Check the batches of a segment and index them anew; returns how many bytes were cut off its end."""
    segment.reset_indexes()
    segment.index_interval_bytes = log.config.index_interval_bytes
    valid_bytes = 0
    next_offset = segment.base_offset
    try:
        for position, view in segment.read_batches(0):
            _require_valid(view, next_offset, segment)
            size = view.size_in_bytes
            segment.note_batch(position, size, view.base_offset, view.last_offset, view.max_timestamp)
            if view.partition_leader_epoch > log.leader_epochs.latest_epoch:
                log.leader_epochs.assign(view.partition_leader_epoch, view.base_offset)
            for txn, last_stable_offset in log.producers.replay((view,)):
                segment.txn_index.append(
                    AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset)
                )
            next_offset = view.next_offset
            valid_bytes = position + size
    except KafkaError as error:
        if error.code != ErrorCode.CORRUPT_MESSAGE:  # a format we do not read must not be cut away
            raise
        logger.warning("invalid batch path=%s position=%d error=%s", segment.file.path, valid_bytes, error)
    cut_bytes = segment.size - valid_bytes
    if cut_bytes:
        segment.file.truncate(valid_bytes)
    return cut_bytes


def _require_valid(view: BatchView, next_offset: int, segment: Segment) -> None:
    if not view.crc_matches():
        raise CorruptBatch(f"the CRC of the batch at offset {view.base_offset} does not match")
    if view.base_offset < next_offset or view.last_offset_delta < 0:
        raise CorruptBatch(f"offset {view.base_offset} does not follow {next_offset}")
    if not segment.reaches(view.last_offset):
        raise CorruptBatch(f"offset {view.last_offset} is out of the reach of its segment")


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
