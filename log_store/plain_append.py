"""The append of one batch of a client that has nothing special about it, in as few steps as there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log_store.durability import failed
from ottla.log_store.index_file import LARGEST_RELATIVE_OFFSET
from ottla.log_store.producer_entry import LAST_SEQUENCE
from ottla.wire.records.header import patch

if TYPE_CHECKING:
    from ottla.log_store.batch_run import BatchHead
    from ottla.log_store.log import Log


def append_plain(
    log: Log,
    batch: memoryview | bytearray,
    head: BatchHead,
    leader_epoch: int,
    now_ms: int,
    *,
    is_transactional: bool = False,
) -> int | None:
    """Append a batch that was found to be ordinary, as those of a BatchRun are, or one more of a transaction; returns
    its first offset. None says that something has to be done before it or looked at, and nothing has happened: it is to
    be appended the usual way. KafkaError if the disk refused."""
    records, timestamp, producer_id, producer_epoch, sequence = head
    producers = log.producers
    entry = None
    if producer_id >= 0 or is_transactional:
        entry = producers.next_of(producer_id, producer_epoch, sequence, is_transactional=is_transactional)
        if entry is None:
            return None
    segment = log.segments[-1]
    file = segment.file
    position, size = file.size, len(batch)
    base_offset = log.log_end_offset
    end_offset = base_offset + records
    offset_index, time_index, epochs = segment.offset_index, segment.time_index, log.leader_epochs
    if (
        not position  # the first batch says how old a segment is
        or position + size > log.segment_bytes
        or offset_index.entries >= offset_index.max_entries
        or time_index.entries + 1 >= time_index.max_entries
        or end_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET
        or segment.waited_for_roll_ms(now_ms, timestamp) > log.segment_ms - segment.roll_jitter_ms
        or leader_epoch != epochs.latest_epoch
        or epochs.is_unwritten
        or log.failure is not None
    ):
        return None
    patch(batch, 0, base_offset, leader_epoch)
    try:
        file.append(batch)
        segment.note_batch(position, size, base_offset, end_offset - 1, timestamp)
    except OSError as error:
        raise failed(log, "append", error) from error
    log.log_end_offset = producers.map_end_offset = end_offset
    if entry is not None:
        last_sequence = (sequence + records - 1) & LAST_SEQUENCE
        entry.add_next(sequence, last_sequence, base_offset, end_offset - 1, timestamp)
    return base_offset
