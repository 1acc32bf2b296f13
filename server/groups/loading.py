"""Reading a partition of `__consumer_offsets` back into a shard, slice by slice.

Offsets that were committed in a transaction count when its marker says so; those of a transaction without one are
pending still.
"""

from __future__ import annotations

import logging

from ottla.group_coordinator.offsets import NO_PRODUCER_ID
from ottla.group_coordinator.records import UnknownRecordType, decode_record
from ottla.group_coordinator.shard import GroupShard
from ottla.log_store.log import Log
from ottla.wire.errors import MalformedMessage
from ottla.wire.records import BatchView, ControlType, iter_batches, iter_records
from ottla.wire.records.control import control_type_of

log = logging.getLogger("ottla.server")


class ShardLoader:
    """Replays a log into a shard that nobody uses yet; runs in a worker thread."""

    def __init__(self, shard: GroupShard, source: Log, slice_bytes: int) -> None:
        self._shard = shard
        self._log = source
        self._slice_bytes = slice_bytes
        self._next_offset = source.log_start_offset
        self._end_offset = source.log_end_offset
        self.record_count = 0

    @property
    def is_done(self) -> bool:
        return self._next_offset >= self._end_offset

    def load_slice(self, now_ms: int) -> None:
        """Replay the next slice. Raises KafkaError when the log cannot be read."""
        found = self._log.read(
            self._next_offset, self._slice_bytes, upto=self._end_offset, at_least_one=True
        ).records
        if found is None:
            self._next_offset = self._end_offset
            return
        for batch in iter_batches(memoryview(found.read())):
            if batch.next_offset > self._next_offset:
                self._replay(batch, now_ms)
                self._next_offset = batch.next_offset

    def _replay(self, batch: BatchView, now_ms: int) -> None:
        if batch.is_control:
            self._end_transaction(batch)
            return
        for raw in iter_records(batch):
            if raw.key is None:
                continue
            try:
                record = decode_record(raw.key, raw.value)
            except (UnknownRecordType, MalformedMessage) as error:
                log.warning("record not understood log=%s offset=%d: %s", self._log.name, raw.offset, error)
                continue
            self.record_count += 1
            producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
            self._shard.apply(record, now_ms, producer_id, raw.offset)

    def _end_transaction(self, batch: BatchView) -> None:
        for marker in iter_records(batch):
            kind = control_type_of(marker)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                self._shard.end_transaction(batch.producer_id, committed=kind == ControlType.COMMIT)
