"""The batches of a segment, a chunk of it at a time: what both passes of cleaning read.

A chunk is about a quarter of a megabyte of whole batches. A batch is where it begins in the chunk and the fields of its
header as they lie there (wire/records/header.py): a view object for each would take longer than all that is
done with a batch of one record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.log_store.compaction.throttle import Throttle
from ottla.log_store.files import Buffer
from ottla.log_store.segment import Segment
from ottla.wire.crc import crc32c
from ottla.wire.records.compression import decompress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    SMALLEST_BATCH_LENGTH,
    BatchView,
    CorruptBatch,
    batch_size_at,
)
from ottla.wire.records.records import MAX_BATCH_BYTES

_CHUNK_BYTES: Final = 1 << 18

# base_offset, batch_length, leader_epoch, magic, crc, attributes, last_offset_delta, base_timestamp, max_timestamp,
# producer_id, producer_epoch, base_sequence, records_count
Header = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

_unpack = HEADER.unpack_from


class Chunk(NamedTuple):
    """Whole batches, and where in which file they lie."""

    path: str
    position: int
    data: memoryview
    batches: list[tuple[int, Header]]

    def check(self, at: int, header: Header) -> None:
        """CorruptBatch if a batch is not what was written."""
        end = at + header[1] + LOG_OVERHEAD
        if header[4] != crc32c(self.data[at + ATTRIBUTES_POSITION : end]):
            raise CorruptBatch(f"{self.path} is damaged at byte {self.position + at}: wrong checksum")

    def payload(self, at: int, header: Header) -> Buffer:
        """The records of a batch, decompressed."""
        stored = self.data[at + HEADER_SIZE : at + header[1] + LOG_OVERHEAD]
        codec = header[5] & CODEC_MASK
        return decompress(codec, stored, MAX_BATCH_BYTES) if codec else stored

    def view(self, at: int) -> BatchView:
        return BatchView(self.data, at)


def read_chunks(segment: Segment, position: int, throttle: Throttle) -> Iterator[Chunk]:
    """The batches from `position` to the end of a segment; CorruptBatch if they do not fill it."""
    path, end = segment.file.path, segment.size
    wanted = _CHUNK_BYTES
    while position < end:
        left = end - position
        data = memoryview(segment.read_fully(position, min(wanted, left)))
        batches = _batches_in(data)
        if batches:
            at, header = batches[-1]
            used = at + header[1] + LOG_OVERHEAD
            throttle.spend(used)
            yield Chunk(path, position, data[:used], batches)
            position += used
        else:
            size = batch_size_at(data, 0, len(data))
            if not len(data) < size <= left:
                raise CorruptBatch(f"{path} is damaged at byte {position}: no whole batch")
            wanted = size + _CHUNK_BYTES


def _batches_in(data: memoryview) -> list[tuple[int, Header]]:
    found = []
    at, end = 0, len(data)
    while end - at >= HEADER_SIZE:
        header: Header = _unpack(data, at)
        length = header[1]
        if header[3] != MAGIC_V2 or length < SMALLEST_BATCH_LENGTH:
            batch_size_at(data, at, end)  # says why
        after = at + length + LOG_OVERHEAD
        if after > end:
            break
        found.append((at, header))
        at = after
    return found
