"""Reading a partition of `__transaction_state` back into a shard, slice by slice."""

from __future__ import annotations

import logging

from ottla.log_store.log import Log
from ottla.txn_coordinator.records import UnknownRecordType, decode_record
from ottla.txn_coordinator.shard import TransactionShard
from ottla.wire.errors import MalformedMessage
from ottla.wire.records import BatchView, iter_batches, iter_records

log = logging.getLogger("ottla.server")


class TransactionLoader:
    """Replays a log into a shard that nobody uses yet; runs in a worker thread."""

    def __init__(self, shard: TransactionShard, source: Log, slice_bytes: int) -> None:
        self._shard = shard
        self._log = source
        self._slice_bytes = slice_bytes
        self._next_offset = source.log_start_offset
        self._end_offset = source.log_end_offset
        self.record_count = 0

    @property
    def is_done(self) -> bool:
        return self._next_offset >= self._end_offset

    def load_slice(self) -> None:
        """Replay the next slice. Raises KafkaError when the log cannot be read."""
        found = self._log.read(
            self._next_offset, self._slice_bytes, upto=self._end_offset, at_least_one=True
        ).records
        if found is None:
            self._next_offset = self._end_offset
            return
        for batch in iter_batches(memoryview(found.read())):
            if batch.next_offset > self._next_offset:
                self._replay(batch)
                self._next_offset = batch.next_offset

    def _replay(self, batch: BatchView) -> None:
        if batch.is_control:
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
            self._shard.apply(record)
