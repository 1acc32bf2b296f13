"""Waiting for records of share partitions, and giving them to the member that asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from ottla.group_coordinator.share_partition.acquire import Acquisition
from ottla.server.broker import Broker
from ottla.server.cold_reads import have_read
from ottla.server.partition import AppendWaiter
from ottla.server.share.partitions import LivePartition, told
from ottla.server.share.reading import NOTHING, Acquired, acquire_records, readable_bytes, to_be_brought
from ottla.server.share.sessions import SessionKey, TopicPartition
from ottla.wire.errors import KafkaError
from ottla.wire.messages.share_fetch import AcquiredRecords, PartitionData, ShareFetchRequest

_RECORD_LIMIT = 1
# An index, where it leads, where what is not committed yet begins, and the records; what does not stay in memory is
# waited for.
_TRIES_TO_BRING = 4


class _Waiter:
    """Parks one request on all its partitions until something is to be had."""

    def __init__(self, found: Sequence[LivePartition]) -> None:
        self._event = trio.Event()
        self._lists: list[set[AppendWaiter]] = []
        for live in found:
            self._lists += live.waiters, live.partition.waiters
        for each in self._lists:
            each.add(self)

    def notify(self) -> None:
        self._event.set()

    async def wait(self, deadline: float) -> None:
        with trio.move_on_at(deadline):
            await self._event.wait()

    def close(self) -> None:
        for each in self._lists:
            each.discard(self)


class ShareFetching:
    """The records of one ShareFetch."""

    def __init__(self, broker: Broker, member: SessionKey, request: ShareFetchRequest) -> None:
        self._broker = broker
        self._group_id, self._member_id = member
        self._request = request
        self._max_bytes = min(request.max_bytes, broker.limits.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._values = broker.share.partitions.values_of(self._group_id)

    async def run(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionData]:
        """An answer for every partition, when there is enough for one or the time is up."""
        deadline = trio.current_time() + self._request.max_wait_ms / 1000
        tries = _TRIES_TO_BRING
        while True:
            found, failed = await self._find(partitions)
            if tries and (cold := self._to_be_brought(found)):
                tries -= 1
                for each in cold:
                    await have_read(each)
                continue  # other members have had their turns
            waiter = _Waiter(list(found.values()))
            try:
                is_last = (
                    bool(failed) or trio.current_time() >= deadline or self._broker.stopping or not partitions
                )
                if is_last or self._has_enough(found):
                    rows = self._acquire(found)
                    if is_last or any(len(row.acquired_records) for row in rows.values()):
                        return {**rows, **failed}
                await waiter.wait(deadline)
            finally:
                waiter.close()

    async def _find(
        self, partitions: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, LivePartition], dict[TopicPartition, PartitionData]]:
        found: dict[TopicPartition, LivePartition] = {}
        failed: dict[TopicPartition, PartitionData] = {}
        for topic_id, index in partitions:
            try:
                found[topic_id, index] = await self._broker.share.partitions.find(
                    self._group_id, topic_id, index
                )
            except KafkaError as error:
                failed[topic_id, index] = PartitionData(
                    partition_index=index, error_code=told(error.code), records=b""
                )
        return found, failed

    def _to_be_brought(self, found: dict[TopicPartition, LivePartition]) -> list[Callable[[], object]]:
        """What has to be brought into memory before it is read in the loop."""
        share_bytes = self._share_bytes(found)
        each = (
            to_be_brought(live, self._values.read_committed, share_bytes, self._request.max_records)
            for live in found.values()
        )
        return [bringing for bringing in each if bringing is not None]

    def _share_bytes(self, found: dict[TopicPartition, LivePartition]) -> int:
        return max(1, self._max_bytes // max(1, len(found)))

    def _has_enough(self, found: dict[TopicPartition, LivePartition]) -> bool:
        if self._min_bytes <= 1:
            return True
        size = 0
        for live in found.values():
            size += readable_bytes(live, self._values.read_committed, self._min_bytes)
            if size >= self._min_bytes:
                return True
        return False

    def _acquire(self, found: dict[TopicPartition, LivePartition]) -> dict[TopicPartition, PartitionData]:
        rows: dict[TopicPartition, PartitionData] = {}
        left = self._request.max_records
        share_bytes = self._share_bytes(found)
        for where, live in found.items():
            row = rows[where] = PartitionData(partition_index=where[1], records=b"")
            try:
                acquired = self._acquire_from(live, left, share_bytes)
            except KafkaError as error:
                row.error_code = error.code
                continue
            row.records = acquired.records
            row.acquired_records = [
                AcquiredRecords(run.first, run.last, run.delivery_count) for run in acquired.runs
            ]
            left -= sum(map(len, acquired.runs))
        return rows

    def _acquire_from(self, live: LivePartition, max_records: int, max_bytes: int) -> Acquired:
        if max_records <= 0:
            return NOTHING
        values = self._values
        wanted = Acquisition(
            member_id=self._member_id,
            max_records=max_records,
            batch_size=self._request.batch_size,
            record_limit=self._request.share_acquire_mode == _RECORD_LIMIT,
            locked_until_ms=self._broker.share.partitions.lock_end_ms(values),
            max_record_locks=values.max_record_locks,
            delivery_count_limit=values.delivery_count_limit,
        )
        acquired = acquire_records(live, wanted, values.read_committed, max_bytes)
        if acquired.runs:
            self._broker.share.partitions.watch_locks(live)
        return acquired
