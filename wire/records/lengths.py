"""Following the records of a batch by their lengths alone: are there as many as counted, and do they fill it?

This is done for every batch that a client sends, so it must cost next to nothing. Records of a batch tend to be of
one size: the length bytes of a whole run are then compared at once, and each record begins where the one before it
ends. Where sizes differ, a table says how far the next record is, which is half the work of decoding its length.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ottla.native import speed
from ottla.wire.records.compression import Buffer
from ottla.wire.records.header import HEADER_SIZE, LOG_OVERHEAD, BatchView
from ottla.wire.records.records import SMALLEST_RECORD_BYTES, InvalidRecord, read_varint

_SMALLEST_BODY_BYTES: Final = SMALLEST_RECORD_BYTES - 1
_SHORTEST_RUN: Final = 16
_LONGEST_RUN: Final = 4096
_LONGEST_WALK: Final = 512  # records to go one by one before another run is tried
_NOWHERE: Final = 1 << 60  # behind every buffer


def count_matches(view: BatchView) -> bool:
    """Whether exactly `records_count` records fill an uncompressed batch, going by their lengths alone."""
    end = view.pos + view.batch_length + LOG_OVERHEAD
    return last_record_at(view.buf, view.pos + HEADER_SIZE, end, view.records_count) is not None


def last_record_at(buf: Buffer, pos: int, end: int, count: int) -> int | None:
    """Where the last of `count` records begins, if they fill the bytes from `pos` to `end` exactly; None if not."""
    if speed is not None:
        at: int | None = speed.follow_lengths(buf, pos, end, count)
        return at
    left = count
    if left < 0 or left * SMALLEST_RECORD_BYTES > end - pos:
        return None
    short, long = _steps()
    last = pos
    walk = 2
    run = _SHORTEST_RUN
    while left:
        try:
            # `left` is what remains behind the record at `last`.
            for left in range(left - 1, max(left - walk, 0) - 1, -1):  # noqa: B007, B020
                last = pos
                byte = buf[pos]
                if byte < 0x80:
                    pos += short[byte]
                else:
                    pos += long[byte][buf[pos + 1]]
        except IndexError:
            left += 1  # if the step before this one led nowhere
        if pos >= _NOWHERE:  # three bytes of length, or none that a record can have
            last = pos - _NOWHERE
            try:
                length, pos = read_varint(buf, last)
            except (IndexError, InvalidRecord):
                return None
            pos += length
            if length < _SMALLEST_BODY_BYTES:
                return None
        if pos > end or last == pos:
            return None
        size = pos - last
        taken = min(run, left, (end - pos) // size)
        if taken < _SHORTEST_RUN:
            walk = _LONGEST_WALK
            continue
        same = _same_lengths(buf, last, size, taken)
        if same:
            pos += same * size
            left -= same
            last = pos - size
        if same == taken:
            run = min(2 * run, _LONGEST_RUN)
            walk = 1
        elif same > 1:
            run = _SHORTEST_RUN
            walk = 2
        else:
            run = _SHORTEST_RUN
            walk = min(2 * walk, _LONGEST_WALK)
    return last if pos == end else None


def _same_lengths(buf: Buffer, last: int, size: int, count: int) -> int:
    """How many of the `count` records behind the one at `last` have the same bytes of length, one after the other."""
    begin = last + size
    end = last + (count + 1) * size
    same = count
    for index in range(5):
        byte = buf[last + index]
        column = bytes(buf[begin + index : end : size])
        if column.count(byte) != count:
            same = min(same, count - len(column.lstrip(bytes((byte,)))))
        if byte < 0x80:
            break
    return same


@cache
def _steps() -> tuple[list[int], list[list[int]]]:
    """How far it is to the next record by a length of one byte, and by one of two, of which the first is 0x80 or more.

    Where that is not the whole length, or no length of a record, the next one is nowhere.
    """
    short = [_step(byte, 1) for byte in range(0x80)]
    none = [_NOWHERE] * 0x100
    long = [none] * 0x100
    for byte in range(0x80, 0x100, 2):  # odd ones are negative lengths
        long[byte] = [_step(byte & 0x7F | high << 7, 2) for high in range(0x80)] + [_NOWHERE] * 0x80
    return short, long


def _step(zigzag: int, width: int) -> int:
    length = zigzag >> 1
    return width + length if not zigzag & 1 and length >= _SMALLEST_BODY_BYTES else _NOWHERE
