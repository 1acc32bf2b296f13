"""What cleaning makes of batches: the same bytes, fewer records, an empty header, or nothing.

Tombstones and the markers of transactions without data get a delete horizon when they are first met: the time after
which they may go (KIP-534). A batch stays as an empty header if a producer's last sequence would be lost with it, or
if it is the last one of the round, so that the end is not lost.

A batch of the dirty part was checked against its checksum when its keys were read. One of the clean part is checked
here, and so is every batch that is made anew: damage must not be given a new, right checksum.
"""

from __future__ import annotations

from typing import Final

from ottla.log_store.compaction.chunks import Chunk
from ottla.log_store.compaction.key_map import KeyMap, RecordFlags, has_any_between
from ottla.log_store.compaction.rewriting import Rewritten, emptied, reduced, with_horizon
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.files import Buffer
from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.records.header import CONTROL_BIT, LOG_OVERHEAD, TRANSACTIONAL_BIT, BatchView
from ottla.wire.records.key_scan import batch_payload, scan_keys

ProducerTail = tuple[int, int]  # last offset with data (-1 if there is none), producer epoch

_SPECIAL: Final = TRANSACTIONAL_BIT | CONTROL_BIT


KeptBatch = tuple[Buffer, int, int]  # its bytes, last offset and greatest timestamp


class BatchFilter:
    """Decides on the batches of a log, in their order."""

    def __init__(
        self,
        key_map: KeyMap,
        transactions: CleanedTransactions,
        producers: dict[int, ProducerTail],
        *,
        now_ms: int,
        delete_retention_ms: int,
        end_offset: int,
    ) -> None:
        self._aborted: list[AbortedTxn] = []
        self._key_map = key_map
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._new_horizon_ms = now_ms + delete_retention_ms
        self._end_offset = end_offset

    def filter(self, chunk: Chunk) -> list[KeptBatch]:
        """What is to be written for a chunk of batches."""
        producers, end_offset = self._producers, self._end_offset
        data = chunk.data
        kept: list[KeptBatch] = []
        for (at, header), flags in zip(chunk.batches, self._flags_of(chunk), strict=True):
            base_offset, length, _, _, _, attributes, delta, _, timestamp, producer_id, _, _, count = header
            last_offset = base_offset + delta
            if not attributes & _SPECIAL and count and not (flags is not None and flags.has_tombstones):
                going = 0 if flags is None else flags.superseded.count(1)
                if not going:
                    kept.append((data[at : at + length + LOG_OVERHEAD], last_offset, timestamp))
                    continue
                if going == count and last_offset + 1 != end_offset and producer_id not in producers:
                    continue
            chunk.check(at, header)
            result = self._decide(chunk.view(at), flags)
            if result is not None:
                kept.append((result.data, last_offset, result.max_timestamp))
        return kept

    def take_aborted(self) -> list[AbortedTxn]:
        """The entries for the transaction index that the markers since the last call have."""
        taken, self._aborted = self._aborted, []
        return taken

    def _flags_of(self, chunk: Chunk) -> list[RecordFlags | None]:
        """What is known of the records of each batch; None for markers, for empty ones and behind the map's end."""
        key_map = self._key_map
        latest_offset = key_map.latest_offset
        found: list[RecordFlags | None] = []
        clean = []
        for index, (_, header) in enumerate(chunk.batches):
            flags = None
            if header[0] <= latest_offset and not header[5] & CONTROL_BIT and header[12]:
                flags = key_map.flags_of(header[0])
                if flags is None:
                    clean.append(index)
            found.append(flags)
        if clean:
            self._look_at_clean(chunk, clean, found)
        return found

    def _look_at_clean(self, chunk: Chunk, indexes: list[int], found: list[RecordFlags | None]) -> None:
        """Find out what is superseded in batches of the clean part, all at once: they tend to be small."""
        payloads = []
        records = 0
        for index in indexes:
            at, header = chunk.batches[index]
            chunk.check(at, header)
            payloads.append(chunk.payload(at, header))
            records += header[12]
        scan = scan_keys(b"".join(payloads), records)
        superseded = self._key_map.flags_of_clean(scan)
        start = 0
        for index in indexes:
            end = start + chunk.batches[index][1][12]
            found[index] = RecordFlags(superseded[start:end], has_any_between(scan.tombstones, start, end))
            start = end

    def _decide(self, view: BatchView, flags: RecordFlags | None) -> Rewritten | None:
        if view.is_control:
            return self._filter_control(view)
        if self._transactions.see_data(view):
            return self._emptied(view)
        if not view.records_count:
            return _as_it_is(view) if self._must_stay(view) else None
        if flags is None:
            return _as_it_is(view)
        payload = batch_payload(view)
        superseded = flags.superseded
        if flags.has_tombstones:
            tombstones = scan_keys(payload, view.records_count).tombstones
            if not view.has_delete_horizon:
                if not all(superseded[index] for index in tombstones):
                    return with_horizon(view, payload, superseded, self._new_horizon_ms)
            elif self._now_ms >= view.base_timestamp:
                superseded = bytearray(superseded)
                for index in tombstones:
                    superseded[index] = 1
        if 1 not in superseded:
            return _as_it_is(view)
        if 0 not in superseded:
            return self._emptied(view)
        return reduced(view, payload, superseded)

    def _filter_control(self, view: BatchView) -> Rewritten | None:
        marker = self._transactions.see_marker(view)
        if marker.aborted is not None:
            self._aborted.append(marker.aborted)
        if not marker.is_removable:
            return _as_it_is(view)
        if not view.records_count:
            return _as_it_is(view) if self._must_stay(view) else None
        if not view.has_delete_horizon:
            return with_horizon(view, batch_payload(view), bytes(view.records_count), self._new_horizon_ms)
        if self._now_ms >= view.base_timestamp:
            return self._emptied(view)
        return _as_it_is(view)

    def _must_stay(self, view: BatchView) -> bool:
        if view.next_offset == self._end_offset:
            return True
        tail = self._producers.get(view.producer_id) if view.has_producer_id else None
        if tail is None:
            return False
        last_offset, epoch = tail
        if last_offset >= 0:
            return view.last_offset == last_offset
        return view.is_control and view.producer_epoch == epoch

    def _emptied(self, view: BatchView) -> Rewritten | None:
        return emptied(view) if self._must_stay(view) else None


def _as_it_is(view: BatchView) -> Rewritten:
    return Rewritten(view.data, view.max_timestamp)
