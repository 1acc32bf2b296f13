"""Reading a whole segment after a crash: every batch checked, and its indexes, epochs and producers made anew.

This is what a start after kill -9 waits for, so it is one tight loop: large reads, one unpack and one
checksum a batch (the crc32c of a large batch lets other threads run), index entries written in one go.

A segment may stop being valid before its end. Whether that is the end of the log or damage in its middle is
told by what follows. `damage_after` looks at it: pages that the system never wrote before the machine went
down, a file that ends inside a batch, and anything behind which no valid batch is found are an end. A batch
that was changed while valid ones follow is damage.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log_store.segment import Segment
from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.crc import crc32c
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    BatchView,
    CorruptBatch,
    batch_size_at,
)

if TYPE_CHECKING:
    from ottla.log_store.log import Log

_READ_BYTES: Final = 1 << 20
_PAGE_BYTES: Final = 4096
_SPECIAL: Final = 0x30  # attributes: transactional or control
_SMALLEST_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
_REACH: Final = 0x7FFFFFFF

_unpack = HEADER.unpack_from
_crc_of = crc32c
_unpack_offset_and_length = struct.Struct(">qi").unpack_from


class Scan(NamedTuple):
    """How far a segment is valid, and why no further (None: all of it is). If `is_cut_off`, the last batch
    claims more bytes than there are."""

    valid_bytes: int
    next_offset: int
    problem: str | None = None
    is_cut_off: bool = False


def scan_segment(log: Log, segment: Segment) -> Scan:
    """Check every batch and make everything anew that is derived from them."""
    segment.reset_indexes()
    segment.index_interval_bytes = log.config.index_interval_bytes
    scanner = _Scanner(log, segment)
    problem = None
    try:
        scanner.run()
    except KafkaError as error:
        if error.code != ErrorCode.CORRUPT_MESSAGE and not _is_magic_unwritten(segment, scanner.position):
            raise  # a format we do not read must not be cut away
        problem = error
    scanner.write_indexes()
    if problem is None:
        return Scan(scanner.position, scanner.next_offset)
    detail = problem.detail or problem.code.name
    return Scan(scanner.position, scanner.next_offset, detail, isinstance(problem, _CutOff))


class _CutOff(CorruptBatch):
    """The file ends inside a batch."""


class _Scanner:
    def __init__(self, log: Log, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self.position = 0  # everything before is valid
        self.next_offset = segment.base_offset
        self._offset_entries: list[tuple[int, int]] = []
        self._time_entries: list[tuple[int, int]] = []
        self._bytes_since_entry = 0
        self._greatest = (-1, segment.base_offset)
        self._first_timestamp: int | None = None

    def run(self) -> None:
        """Read to the end; CorruptBatch where the next bytes are no batch."""
        file = self.segment.file
        wanted = _READ_BYTES
        while self.position < file.size:
            left = file.size - self.position
            chunk = self.segment.read_fully(self.position, min(wanted, left))
            used = self._run_chunk(chunk)
            wanted = _READ_BYTES
            if not used:
                size = batch_size_at(memoryview(chunk), 0, len(chunk))
                if size == 0 or size > left:
                    raise _CutOff(f"the file ends {left} bytes into a batch")
                wanted = size

    def _run_chunk(self, chunk: bytes) -> int:
        """Take every whole batch of a chunk that lies at `position`; returns how many bytes those are."""
        log = self.log
        producers = log.producers
        base = self.segment.base_offset
        interval = log.config.index_interval_bytes
        latest_epoch = log.leader_epochs.latest_epoch
        bytes_since_entry = self._bytes_since_entry
        greatest_timestamp, greatest_offset = self._greatest
        next_offset = self.next_offset
        start = self.position
        end_of_chunk = len(chunk)
        view = memoryview(chunk)
        at = 0
        try:
            while end_of_chunk - at >= HEADER_SIZE:
                (
                    base_offset,
                    length,
                    epoch,
                    magic,
                    crc,
                    attributes,
                    delta,
                    _,
                    timestamp,
                    producer_id,
                    producer_epoch,
                    sequence,
                    _,
                ) = _unpack(chunk, at)
                end = at + length + LOG_OVERHEAD
                if magic != 2 or length < _SMALLEST_LENGTH:
                    batch_size_at(view, at, end_of_chunk)  # says why
                if end > end_of_chunk:
                    break
                if crc != _crc_of(view[at + 21 : end]):
                    raise CorruptBatch(f"the CRC of the batch at offset {base_offset} does not match")
                last_offset = base_offset + delta
                if base_offset < next_offset or delta < 0:
                    raise CorruptBatch(f"offset {base_offset} does not follow {next_offset}")
                if last_offset - base > _REACH:
                    raise CorruptBatch(f"offset {last_offset} is out of the reach of its segment")
                if timestamp > greatest_timestamp:
                    greatest_timestamp, greatest_offset = timestamp, last_offset
                if bytes_since_entry > interval:
                    self._offset_entries.append((last_offset - base, start + at))
                    self._time_entries.append((greatest_timestamp, greatest_offset - base))
                    bytes_since_entry = 0
                bytes_since_entry += end - at
                if epoch > latest_epoch:
                    log.leader_epochs.assign(epoch, base_offset)
                    latest_epoch = epoch
                if producer_id >= 0:
                    if attributes & _SPECIAL:
                        self._replay(BatchView(view, at))
                    else:
                        last_sequence = -1 if sequence == -1 else (sequence + delta) & _REACH
                        producers.replay_data(
                            producer_id,
                            producer_epoch,
                            (sequence, last_sequence),
                            (base_offset, last_offset),
                            timestamp,
                        )
                if self._first_timestamp is None:
                    self._first_timestamp = timestamp
                next_offset = last_offset + 1
                at = end
        finally:
            self.position = start + at
            self.next_offset = producers.map_end_offset = next_offset
            self._bytes_since_entry = bytes_since_entry
            self._greatest = greatest_timestamp, greatest_offset
        return at

    def _replay(self, view: BatchView) -> None:
        if (
            view.is_control
            and view.last_offset < self.log.log_start_offset
            and view.producer_id not in self.log.producers.producers
        ):
            return  # the transaction is deleted, and its producer goes on with a sequence that nothing tells
        for txn, last_stable_offset in self.log.producers.replay((view,)):
            self.segment.txn_index.append(
                AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset)
            )

    def write_indexes(self) -> None:
        times: list[tuple[int, int]] = []
        for entry in self._time_entries:
            if entry[0] > (times[-1][0] if times else -1):
                times.append(entry)
        self.segment.take_scanned(
            self._offset_entries, times, self._greatest, self._first_timestamp, self._bytes_since_entry
        )


# ---- what follows the last valid batch


def damage_after(log: Log, slot: int, scan: Scan) -> str | None:
    """Why the bytes behind the valid ones of a segment are damage in the middle of the log; None if the log
    ends there."""
    segment = log.segments[slot]
    following = _valid_batch_after(segment, scan.valid_bytes, scan.next_offset)
    if following is None:
        if scan.is_cut_off or not any(_begins_with_a_batch(later) for later in log.segments[slot + 1 :]):
            return None
        following = segment.size
    return _damage_before(following, segment, scan)


def damage_within(segment: Segment, scan: Scan) -> str | None:
    """The same for a last segment alone."""
    following = _valid_batch_after(segment, scan.valid_bytes, scan.next_offset)
    return None if following is None else _damage_before(following, segment, scan)


def _damage_before(following: int, segment: Segment, scan: Scan) -> str | None:
    if _has_unwritten_page(segment, scan, following):
        return None
    return (
        f"{segment.file.path} is damaged at byte {scan.valid_bytes} (offset {scan.next_offset}): {scan.problem}, "
        "but valid batches follow"
    )


def _begins_with_a_batch(segment: Segment) -> bool:
    return _is_batch_at(segment, 0, segment.base_offset)


def _is_batch_at(segment: Segment, position: int, least_offset: int) -> bool:
    header = segment.file.read(position, HEADER_SIZE)
    if len(header) < HEADER_SIZE:
        return False
    base_offset, length = _unpack_offset_and_length(header)
    if (
        header[MAGIC_POSITION] != 2
        or length < _SMALLEST_LENGTH
        or length + LOG_OVERHEAD > segment.size - position
    ):
        return False
    if not least_offset <= base_offset <= segment.base_offset + _REACH:
        return False
    return BatchView(memoryview(segment.read_fully(position, length + LOG_OVERHEAD))).crc_matches()


def _valid_batch_after(segment: Segment, position: int, least_offset: int) -> int | None:
    """Where the next valid batch begins, looked for byte by byte: a damaged length leads nowhere."""
    start = position + 1
    while start + HEADER_SIZE <= segment.size:
        chunk = segment.file.read(start, _READ_BYTES)
        magic_at = chunk.find(b"\x02", 16)
        while magic_at >= 0:
            if _is_batch_at(segment, start + magic_at - 16, least_offset):
                return start + magic_at - 16
            magic_at = chunk.find(b"\x02", magic_at + 1)
        start += max(1, len(chunk) - 16)
    return None


def _is_magic_unwritten(segment: Segment, position: int) -> bool:
    """Whether the magic of the batch at `position` is 0 only because its page was never written."""
    magic_at = position + MAGIC_POSITION
    start = max(position, magic_at - magic_at % _PAGE_BYTES)
    return not segment.file.read(start, _PAGE_BYTES - start % _PAGE_BYTES).strip(b"\0")


def _has_unwritten_page(segment: Segment, scan: Scan, end: int) -> bool:
    """Whether a page behind the valid bytes and before `end` is nothing but zeros, as far as it lies there."""
    page = scan.valid_bytes
    leading_zeros = 8 - (scan.next_offset.bit_length() + 7) // 8  # of the offset that should come next
    while page < end:
        page_end = min(end, page - page % _PAGE_BYTES + _PAGE_BYTES)
        data = segment.file.read(page, page_end - page)
        is_whole = page_end % _PAGE_BYTES == 0 or page_end == segment.size
        if is_whole and not data.strip(b"\0") and (page > scan.valid_bytes or len(data) > leading_zeros):
            return True
        page = page_end
    return False
