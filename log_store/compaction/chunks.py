"""The batches of a segment, a chunk of it at a time: what both passes of cleaning read.

A chunk is about a quarter of a megabyte of whole batches. A batch is where it begins in the chunk and the fields of its
header as they lie there (wire/records/header.py): a view object for each would take longer than all that is
done with a batch of one record. What can be done with all batches of a chunk in one go is done so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeVar

from ottla.log_store.compaction.header_fields import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_LENGTH,
    CRC,
    LAST_OFFSET_DELTA,
    MAGIC,
    Header,
)
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

_unpack = HEADER.unpack_from

Measured = TypeVar("Measured")


class Chunk(NamedTuple):
    """Whole batches, and where in which file they lie."""

    path: str
    position: int
    data: memoryview
    headers: list[Header]
    bounds: list[int]  # where each batch begins in `data`, and at last where the last one ends
    attributes: int  # the bits that any of them has

    def first_reaching(self, offset: int) -> int:
        """The index of the first batch that ends at or behind an offset; of none, how many there are."""
        headers = self.headers
        if headers[0][BASE_OFFSET] + headers[0][LAST_OFFSET_DELTA] >= offset:
            return 0
        return bisect_left(
            headers, offset, key=lambda header: header[BASE_OFFSET] + header[LAST_OFFSET_DELTA]
        )

    def check_all(self, first: int = 0) -> None:
        """CorruptBatch if one of the batches from an index on is not what was written."""
        data, bounds = self.data, self.bounds
        found = [
            crc32c(data[start + ATTRIBUTES_POSITION : end])
            for start, end in zip(bounds[first:-1], bounds[first + 1 :], strict=True)
        ]
        if found != [header[CRC] for header in self.headers[first:]]:
            for index in range(first, len(self.headers)):
                self.check(index)

    def check(self, index: int) -> None:
        """CorruptBatch if a batch is not what was written."""
        start = self.bounds[index]
        if self.headers[index][CRC] != crc32c(
            self.data[start + ATTRIBUTES_POSITION : self.bounds[index + 1]]
        ):
            raise CorruptBatch(f"{self.path} is damaged at byte {self.position + start}: wrong checksum")

    def payload(self, index: int) -> Buffer:
        """The records of a batch, decompressed."""
        stored = self.data[self.bounds[index] + HEADER_SIZE : self.bounds[index + 1]]
        codec = self.headers[index][ATTRIBUTES] & CODEC_MASK
        return decompress(codec, stored, MAX_BATCH_BYTES) if codec else stored

    def view(self, index: int) -> BatchView:
        return BatchView(self.data, self.bounds[index])


def chunk_of_batch(path: str, position: int, data: memoryview, at: int) -> Chunk:
    """The one batch that begins at `at` in data that was read from `position`; it must be whole."""
    header: Header = _unpack(data, at)
    size = header[BATCH_LENGTH] + LOG_OVERHEAD
    return Chunk(path, position + at, data[at : at + size], [header], [0, size], header[ATTRIBUTES])


def read_chunks(segment: Segment, position: int, throttle: Throttle) -> Iterator[Chunk]:
    """The batches from `position` to the end of a segment; CorruptBatch if they do not fill it."""
    path = segment.file.path
    for at, data, (headers, bounds, attributes) in read_whole_batches(
        segment, position, throttle, _measured_batches
    ):
        yield Chunk(path, at, data, headers, bounds, attributes)


def read_whole_batches(
    segment: Segment,
    position: int,
    throttle: Throttle,
    measure: Callable[[memoryview], tuple[int, Measured]],
) -> Iterator[tuple[int, memoryview, Measured]]:
    """The bytes from `position` to the end of a segment, some whole batches at a time, each time with where they lie.
    `measure` says how many bytes of what was read are whole batches, and what else it found on the way."""
    path, end = segment.file.path, segment.size
    wanted = _CHUNK_BYTES
    while position < end:
        left = end - position
        data = memoryview(segment.read_fully(position, min(wanted, left)))
        used, measured = measure(data)
        if used:
            throttle.spend(used)
            yield position, data[:used], measured
            position += used
        else:
            size = batch_size_at(data, 0, len(data))
            if not len(data) < size <= left:
                raise CorruptBatch(f"{path} is damaged at byte {position}: no whole batch")
            wanted = size + _CHUNK_BYTES


def _measured_batches(data: memoryview) -> tuple[int, tuple[list[Header], list[int], int]]:
    found = _batches_in(data)
    return found[1][-1], found


def _batches_in(data: memoryview) -> tuple[list[Header], list[int], int]:
    headers = []
    bounds = [0]
    at, end, attributes = 0, len(data), 0
    last = end - HEADER_SIZE
    while at <= last:
        header: Header = _unpack(data, at)
        length = header[BATCH_LENGTH]
        if header[MAGIC] != MAGIC_V2 or length < SMALLEST_BATCH_LENGTH:
            batch_size_at(data, at, end)  # says why
        at += length + LOG_OVERHEAD
        if at > end:
            break
        headers.append(header)
        bounds.append(at)
        attributes |= header[ATTRIBUTES]
    return headers, bounds, attributes
