"""The older batches of a producer's window, found in the log.

A snapshot keeps the last batch of a producer only, so after a clean restart Kafka takes a repeated batch before that
one for out of order, and clients give up or write it twice. The batches themselves are still in the log: when a
producer from a snapshot sends something that does not follow, the headers before its last batch are read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log_store.producer_entry import BATCHES_TO_RETAIN, BatchMetadata, ProducerEntry
from ottla.log_store.segment import Segment

if TYPE_CHECKING:
    from ottla.log_store.log import Log

# Five batches in flight of max.message.bytes by default, and room for those of others between them.
BYTES_TO_LOOK_BACK: Final = 8 << 20


def refill_window(log: Log, entry: ProducerEntry) -> None:
    """Put the batches that were appended before the first one of the window in front of it."""
    oldest = entry.batches[0]
    if oldest.first_offset < log.log_start_offset:
        return
    slot = log.slot_of(oldest.first_offset)
    budget = BYTES_TO_LOOK_BACK
    older: list[BatchMetadata] = []
    while slot >= 0 and budget > 0 and len(older) + len(entry.batches) < BATCHES_TO_RETAIN:
        segment = log.segments[slot]
        found = segment.find(oldest.first_offset)
        end = segment.size if found is None else found.position
        start = segment.offset_index.position_before(max(0, end - budget))
        older = [*_batches_of(segment, start, end, entry), *older]
        budget -= end - start
        slot -= 1
    entry.batches = [*older, *entry.batches][-BATCHES_TO_RETAIN:]


def _batches_of(segment: Segment, start: int, end: int, entry: ProducerEntry) -> list[BatchMetadata]:
    return [
        BatchMetadata(
            view.base_sequence, view.last_sequence, view.base_offset, view.last_offset, view.max_timestamp
        )
        for view in segment.read_headers(start, end)
        if view.producer_id == entry.producer_id
        and view.producer_epoch == entry.producer_epoch
        and not view.is_control
    ]
