"""Records of a share partition, from the log to a member: read from the fetch offset on, acquired, and cut to that."""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from ottla.group_coordinator.share_partition.acquire import (
    Acquisition,
    BatchRange,
    acquire,
    archive_aborted,
    room_for,
)
from ottla.group_coordinator.share_partition.runs import Run
from ottla.log_store.log import Log
from ottla.log_store.page_cache import NotInMemory, is_in_memory
from ottla.log_store.reads import ReadResult
from ottla.server.share.partitions import LivePartition
from ottla.wire.chunks import Chunk, FileSlice
from ottla.wire.errors import KafkaError

_WINDOW_BYTES: Final = 64 * 1024
_HEADER_BYTES: Final = 61
_FIRST_BYTES: Final = 1024 * 1024
_LENGTH_AT: Final = 12  # the length field counts from behind itself
_TRANSACTIONAL: Final = 0x10
_unpack = struct.Struct(
    ">qi9xhi16xq"
).unpack_from  # base offset, length, attributes, last offset delta, producer id


class _Batch(NamedTuple):
    """Where a batch is in a slice, and what its header says."""

    position: int
    end: int
    range: BatchRange
    attributes: int
    producer_id: int


class Acquired(NamedTuple):
    """Runs of records that are with the member now, and the bytes of their batches."""

    runs: list[Run]
    records: Chunk


NOTHING: Final = Acquired([], b"")


def readable_bytes(live: LivePartition, read_committed: bool, max_bytes: int) -> int:
    """How much there is to read, up to this many bytes; an error is as good as all of them."""
    try:
        found = _read(live, read_committed, max_bytes)
    except KafkaError:
        return max_bytes
    return 0 if found.records is None else len(found.records)


def acquire_records(
    live: LivePartition, wanted: Acquisition, read_committed: bool, max_bytes: int
) -> Acquired:
    """Give what there is to the member. Raises KafkaError when the log cannot be read."""
    state, log = live.state, live.partition.log
    state.start_at(log.log_start_offset)
    room, _ = room_for(state, wanted)
    if room <= 0:
        return NOTHING
    offset = state.fetch_offset
    found = _read(live, read_committed, max_bytes)
    if found.records is None:
        return NOTHING
    batches = list(_scan(found.records, state.next_offset + room))
    runs = acquire(state, wanted, [batch.range for batch in batches])
    if read_committed and runs:
        runs = archive_aborted(state, runs, _aborted(log, offset, found, batches))
        state.settle()
    if not runs:
        return NOTHING
    first, last = runs[0].first, runs[-1].last
    needed = [
        batch for batch in batches if batch.range.last_offset >= first and batch.range.base_offset <= last
    ]
    if not needed:
        return Acquired(runs, b"")
    start, end = needed[0].position, needed[-1].end
    return Acquired(runs, FileSlice(found.records.file, found.records.position + start, end - start))


def to_be_brought(
    live: LivePartition, read_committed: bool, max_bytes: int, max_records: int
) -> Callable[[], object] | None:
    """What brings into memory, in a worker thread, what is to be read and is not there; None if there is nothing, or
    nothing that can be read. Of many bytes a member may take few records: no more is brought than are looked at."""
    try:
        records = _read(live, read_committed, max_bytes, only_cached=True).records
    except NotInMemory as missing:
        return missing.bring
    except KafkaError:
        return None
    if records is None:
        return None
    first = FileSlice(records.file, records.position, min(records.length, _FIRST_BYTES))
    if is_in_memory(first.fileno(), first.position, first.length):
        return None
    return partial(_bring, first, records, live.state.next_offset + max_records)


def _bring(first: FileSlice, records: FileSlice, last_wanted: int) -> None:
    first.read()
    deque(_scan(records, last_wanted), maxlen=0)


def _read(
    live: LivePartition, read_committed: bool, max_bytes: int, *, only_cached: bool = False
) -> ReadResult:
    log = live.partition.log
    offset = max(live.state.fetch_offset, log.log_start_offset)
    upto = log.last_stable_offset if read_committed else log.high_watermark
    if offset >= upto:
        return ReadResult(None)
    return log.read(offset, max_bytes, upto=upto, at_least_one=True, only_cached=only_cached)


def _scan(records: FileSlice, last_wanted: int) -> Iterator[_Batch]:
    """The batches up to an offset, by their headers; a few of them are looked at with each read of the file."""
    position = window_start = 0
    window = b""
    while position + _HEADER_BYTES <= records.length:
        if position + _HEADER_BYTES > window_start + len(window):
            size = min(_WINDOW_BYTES, records.length - position)
            window, window_start = os.pread(records.fileno(), size, records.position + position), position
            if len(window) < _HEADER_BYTES:
                return
        base, length, attributes, last_delta, producer_id = _unpack(window, position - window_start)
        end = position + _LENGTH_AT + length
        if end > records.length or base > last_wanted:
            return
        yield _Batch(position, end, BatchRange(base, base + last_delta), attributes, producer_id)
        position = end


def _aborted(log: Log, offset: int, found: ReadResult, batches: list[_Batch]) -> list[BatchRange]:
    """Batches of transactions that were aborted; their markers are not among them: members pass over those."""
    transactions = log.aborted_transactions(offset, found)
    return [
        batch.range
        for batch in batches
        if batch.attributes & _TRANSACTIONAL
        and any(
            aborted.producer_id == batch.producer_id
            and aborted.first_offset <= batch.range.base_offset < aborted.last_offset
            for aborted in transactions
        )
    ]
