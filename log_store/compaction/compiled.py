"""What a round of cleaning does with batches, with its loops in C (native/compaction.c).

C takes batch after batch until it meets one that is not for it, and says why it stopped. Markers and the data of
transactions are decided on here, as in the twin; compressed batches are opened and closed here. Of what does not make
sense the twin is asked what is wrong.

The map of keys is like that of the twin, with a number for each record and a flag whether it is superseded, but it
takes 16 bytes for a key from the beginning.
"""

from __future__ import annotations

import os
import struct
from enum import IntEnum
from types import ModuleType
from typing import Any, Final

from ottla.log_store.compaction.chunk_keys import scan_chunk
from ottla.log_store.compaction.chunks import Chunk, chunk_of_batch, read_whole_batches
from ottla.log_store.compaction.cleaned_segment import CleanedSegment
from ottla.log_store.compaction.header_fields import (
    ATTRIBUTES,
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    PRODUCER_ID,
    Header,
)
from ottla.log_store.compaction.job import CleaningJob
from ottla.log_store.compaction.rewriting import closed
from ottla.log_store.compaction.round import Round
from ottla.log_store.compaction.special_batches import SpecialBatches
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.files import FileSystem
from ottla.log_store.segment import Segment
from ottla.wire.records.header import CODEC_MASK, CONTROL_BIT, HEADER_SIZE, batch_size_at
from ottla.wire.records.records import MAX_BATCH_BYTES, InvalidRecord
from ottla.wire.records.unpacking import Scratch

_SEED_BYTES: Final = 16
_MOST_BYTES: Final = 1 << 62
_pack_producer = struct.Struct("=qq").pack


class Stop(IntEnum):
    """Why C did not go on: the values are those of `enum stop` in native/compaction.h."""

    AT_END = 0
    IS_FULL = 1
    IS_SPECIAL = 2
    IS_COMPRESSED = 3
    IS_DAMAGED = 4


class Fate(IntEnum):
    """What became of a batch: `enum fate` there."""

    DROPPED = 0
    AS_IT_IS = 1
    REDUCED = 2
    EMPTIED = 3


class CompiledRound(Round):
    """A round with its loops in C."""

    def __init__(self, job: CleaningJob, fs: FileSystem, speed: ModuleType) -> None:
        super().__init__(job, fs)
        max_bytes = min(int(job.key_map_bytes * job.load_factor), _MOST_BYTES)
        self._speed = speed
        self._round: Any = speed.new_round(max_bytes, os.urandom(_SEED_BYTES), job.first_dirty_offset)
        self._transactions = CleanedTransactions(self.aborted)
        self._special = SpecialBatches(job, CleanedTransactions(self.aborted))
        self._scratch: Scratch | None = None  # made when something is compressed

    @property
    def latest_offset(self) -> int:
        return self._fact(0)

    @property
    def indexed_bytes(self) -> int:
        return self._fact(1)

    @property
    def keys(self) -> int:
        return self._fact(2)

    def _fact(self, index: int) -> int:
        fact: int = self._speed.round_facts(self._round)[index]
        return fact

    # ---- the first pass

    def map_segment(self, segment: Segment, position: int) -> bool:
        for place, data, _ in read_whole_batches(segment, position, self.throttle, self._measure):
            at, end = 0, len(data)
            while at < end:
                at, stop = self._speed.map_batches(self._round, data, at, False)
                if stop != Stop.AT_END:
                    chunk = chunk_of_batch(segment.file.path, place, data, at)
                    stop = self._map_batch(chunk, stop)
                    if stop == Stop.IS_FULL:
                        return False
                    if stop != Stop.AT_END:
                        raise _wrong(chunk)
                    at += len(chunk.data)
        return True

    def _map_batch(self, chunk: Chunk, stop: int) -> int:
        """Take the keys of a batch that C left, and why."""
        if stop == Stop.IS_SPECIAL:
            chunk.check(0)
            header = chunk.headers[0]
            if self._is_passed_over(chunk, header):
                self._speed.round_reached(
                    self._round, header[BASE_OFFSET] + header[LAST_OFFSET_DELTA], len(chunk.data)
                )
                return Stop.AT_END
            _, stop = self._speed.map_batches(self._round, chunk.data, 0, True)
        if stop == Stop.IS_COMPRESSED:
            return int(self._speed.map_opened(self._round, chunk.data, self._opened(chunk)))
        return stop

    def _is_passed_over(self, chunk: Chunk, header: Header) -> bool:
        """Whether a batch is a marker, or of a transaction that was aborted."""
        if header[ATTRIBUTES] & CONTROL_BIT:
            self._transactions.see_marker(chunk.view(0))
            return True
        base_offset = header[BASE_OFFSET]
        return self._transactions.see_data(
            header[PRODUCER_ID], base_offset, base_offset + header[LAST_OFFSET_DELTA]
        )

    def map_reached(self, offset: int) -> None:
        self._speed.round_reached(self._round, offset, 0)

    # ---- the second pass

    def begin_filter(self) -> None:
        job = self.job
        producers = b"".join(
            [_pack_producer(producer_id, tail[0]) for producer_id, tail in sorted(job.producers.items())]
        )
        self._speed.begin_filter(
            self._round, job.now_ms, self._special.new_horizon_ms, job.first_uncleanable_offset, producers
        )

    def clean_segment(self, segment: Segment, cleaned: CleanedSegment) -> None:
        speed = self._speed
        for place, data, _ in read_whole_batches(segment, 0, self.throttle, self._measure):
            at, end = 0, len(data)
            self.read_bytes += end
            while at < end:
                kept, at, stop = speed.filter_batches(self._round, data, at, False)
                cleaned.write_compiled(kept, speed)
                if stop != Stop.AT_END:
                    chunk = chunk_of_batch(segment.file.path, place, data, at)
                    cleaned.write_compiled(self._filter_batch(chunk, stop), speed)
                    at += len(chunk.data)
        for txn in self._special.take_aborted():
            cleaned.segment.txn_index.append(txn)

    def _filter_batch(self, chunk: Chunk, stop: int) -> bytes:
        """What is to be written of a batch that C left, and why."""
        if stop == Stop.IS_SPECIAL:
            is_decided, result = self._special.filter_special(chunk, 0)
            if is_decided:
                return b"" if result is None else bytes(result.data)
            kept: bytes
            kept, _, stop = self._speed.filter_batches(self._round, chunk.data, 0, True)
            if stop == Stop.AT_END:
                return kept
        if stop == Stop.IS_COMPRESSED:
            chunk.check(0)
            kept, fate, stop = self._speed.filter_opened(self._round, chunk.data, self._opened(chunk))
            if stop == Stop.AT_END:
                return closed(kept) if fate == Fate.REDUCED else kept
        raise _wrong(chunk)

    def _opened(self, chunk: Chunk) -> memoryview:
        """The records of a compressed batch, until the next one is opened."""
        codec = chunk.headers[0][ATTRIBUTES] & CODEC_MASK
        if self._scratch is None:
            self._scratch = Scratch()
        records, size = self._scratch.unpack(codec, chunk.data[HEADER_SIZE:], MAX_BATCH_BYTES)
        return memoryview(records)[:size]

    def _measure(self, data: memoryview) -> tuple[int, None]:
        used: int = self._speed.whole_batches(data)
        if len(data) - used >= HEADER_SIZE:
            batch_size_at(data, used, len(data))  # says what is wrong, unless it is only cut off
        return used, None


def _wrong(chunk: Chunk) -> InvalidRecord:
    """What is wrong with a batch that C does not take: the twin says so."""
    chunk.check(0)
    scan_chunk(chunk)
    return InvalidRecord("the records of a batch do not fit into it")
