"""What cleaning makes of a batch: the same bytes, fewer records, an empty header, or nothing.

A batch that loses records keeps its offsets (first and last), codec and producer fields, and the bytes of the records
that stay; length, count, greatest timestamp and checksum are new. Tombstones and the markers of transactions
without data get a delete horizon when they are first met: the time after which they may go, kept in the base
timestamp (KIP-534), so that the timestamps of the records are written anew once. A batch stays as an empty header if
a producer's last sequence would be lost with it, or if it is the last one of the round, so that the end
is not lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.log_store.compaction.key_map import KeyMap
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.files import Buffer
from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.crc import crc32c
from ottla.wire.records.builder import write_varint
from ottla.wire.records.compression import Codec, compress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchView,
)
from ottla.wire.records.key_scan import ScannedBatch, batch_payload, record_bounds, scan_batch
from ottla.wire.records.records import read_varint, read_varlong

_CRC_POSITION = 17

ProducerTail = tuple[int, int]  # last offset with data (-1 if there is none), producer epoch


class BatchFilter:
    """Decides on the batches of a log, in their order. `max_timestamp` is that of the batch `filter` returned last,
    and `aborted` the entry that its marker has in the transaction index."""

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
        self.max_timestamp = NO_TIMESTAMP
        self.aborted: AbortedTxn | None = None
        self._key_map = key_map
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._new_horizon_ms = now_ms + delete_retention_ms
        self._end_offset = end_offset

    def filter(self, view: BatchView) -> Buffer | None:
        """The bytes that take the place of a batch; None if it goes."""
        self.max_timestamp = view.max_timestamp
        self.aborted = None
        if view.is_control:
            return self._filter_control(view)
        if self._transactions.see_data(view):
            return self._emptied(view)
        if not view.records_count:
            return view.data if self._must_stay(view) else None
        if view.base_offset > self._key_map.latest_offset:
            return view.data
        dirty = self._key_map.dirty_batch(view.base_offset)
        if dirty is not None and not dirty.has_tombstones:
            return self._filter_values(view, dirty.survivors)
        scan = scan_batch(view)
        kept = self._key_map.survivors_of_clean(scan) if dirty is None else dirty.survivors
        if not scan.tombstones:
            return self._filter_values(view, kept)
        return self._filter_tombstones(view, scan, kept)

    def _filter_values(self, view: BatchView, kept: Sequence[int]) -> Buffer | None:
        if not kept:
            return self._emptied(view)
        if len(kept) == view.records_count:
            return view.data
        payload = batch_payload(view)
        return self._reduced(view, payload, record_bounds(payload, view.records_count), kept)

    def _filter_tombstones(self, view: BatchView, scan: ScannedBatch, kept: Sequence[int]) -> Buffer | None:
        tombstones = set(scan.tombstones)
        if view.has_delete_horizon:
            if self._now_ms >= view.base_timestamp:
                kept = [index for index in kept if index not in tombstones]
        elif not tombstones.isdisjoint(kept):
            return self._with_horizon(view, scan.payload, scan.bounds, kept)
        if not kept:
            return self._emptied(view)
        if len(kept) == view.records_count:
            return view.data
        return self._reduced(view, scan.payload, scan.bounds, kept)

    def _filter_control(self, view: BatchView) -> Buffer | None:
        marker = self._transactions.see_marker(view)
        self.aborted = marker.aborted
        if not marker.is_removable:
            return view.data
        if not view.records_count:
            return view.data if self._must_stay(view) else None
        if not view.has_delete_horizon:
            payload = batch_payload(view)
            bounds = record_bounds(payload, view.records_count)
            return self._with_horizon(view, payload, bounds, range(view.records_count))
        if self._now_ms >= view.base_timestamp:
            return self._emptied(view)
        return view.data

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

    def _emptied(self, view: BatchView) -> bytes | None:
        if not self._must_stay(view):
            return None
        attributes = view.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
        return _batch(view, b"", 0, attributes, NO_TIMESTAMP, view.max_timestamp)

    def _reduced(self, view: BatchView, payload: bytes, bounds: list[int], kept: Sequence[int]) -> bytes:
        records = b"".join([payload[bounds[index] : bounds[index + 1]] for index in kept])
        self._note_timestamp(view, payload, bounds, kept)
        return self._compressed(view, records, len(kept), view.attributes, view.base_timestamp)

    def _with_horizon(self, view: BatchView, payload: bytes, bounds: list[int], kept: Sequence[int]) -> bytes:
        horizon_ms = self._new_horizon_ms
        shift = view.base_timestamp - horizon_ms
        records = bytearray()
        for index in kept:
            _, at = read_varint(payload, bounds[index])
            delta, after = read_varlong(payload, at + 1)
            body = bytearray(payload[at : at + 1])
            write_varint(body, delta + shift)
            body += payload[after : bounds[index + 1]]
            write_varint(records, len(body))
            records += body
        self._note_timestamp(view, payload, bounds, kept)
        return self._compressed(view, records, len(kept), view.attributes | DELETE_HORIZON_BIT, horizon_ms)

    def _note_timestamp(
        self, view: BatchView, payload: bytes, bounds: list[int], kept: Sequence[int]
    ) -> None:
        if view.timestamp_type != LOG_APPEND_TIME and len(kept) != view.records_count:
            self.max_timestamp = _greatest_timestamp(view, payload, bounds, kept)

    def _compressed(
        self, view: BatchView, records: Buffer, count: int, attributes: int, base_timestamp: int
    ) -> bytes:
        payload = records if view.codec == Codec.NONE else compress(view.codec, records)
        return _batch(view, payload, count, attributes, base_timestamp, self.max_timestamp)


def _greatest_timestamp(view: BatchView, payload: bytes, bounds: list[int], kept: Sequence[int]) -> int:
    """The greatest timestamp of the records that stay. Timestamps tend to ascend, so the search begins at the end."""
    base = view.base_timestamp
    greatest = NO_TIMESTAMP
    for index in reversed(kept):
        _, at = read_varint(payload, bounds[index])
        timestamp = base + read_varlong(payload, at + 1)[0]
        if timestamp > greatest:
            greatest = timestamp
            if greatest >= view.max_timestamp:
                return view.max_timestamp
    return greatest


def _batch(
    view: BatchView, payload: Buffer, count: int, attributes: int, base_timestamp: int, max_timestamp: int
) -> bytes:
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch,
        0,
        view.base_offset,
        len(batch) - LOG_OVERHEAD,
        view.partition_leader_epoch,
        view.magic,
        0,
        attributes,
        view.last_offset_delta,
        base_timestamp,
        max_timestamp,
        view.producer_id,
        view.producer_epoch,
        view.base_sequence,
        count,
    )
    batch[HEADER_SIZE:] = payload
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    batch[_CRC_POSITION : _CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return bytes(batch)
