"""The share coordinator: states of share partitions in the partitions of `__share_group_state` that this broker leads.

Until a partition has been replayed, what it holds is COORDINATOR_LOAD_IN_PROGRESS. A record is applied when it has been
appended; an append that fails changes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import trio

from ottla.group_coordinator.records import UnknownRecordType
from ottla.group_coordinator.share_state.records import (
    ShareStateRecord,
    decode_share_record,
    encode_share_record,
)
from ottla.group_coordinator.share_state.shard import (
    SharePartitionKey,
    ShareState,
    ShareStateShard,
    StateWrite,
)
from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin
from ottla.metadata.image import MetadataDelta
from ottla.server.groups.topics import ImageTopics
from ottla.server.internal_topics import SHARE_STATE_TOPIC, coordinator_partition
from ottla.server.partition import Partition
from ottla.server.topic_creation import create_missing_topics
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.records import Record, build_batch, iter_batches, iter_records
from ottla.wire.uuids import format_uuid

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")


class _Loaded(NamedTuple):
    shard: ShareStateShard
    partition: Partition


def coordinator_key(key: SharePartitionKey) -> str:
    """The text by which a share partition finds its coordinator."""
    return f"{key.group_id}:{format_uuid(key.topic_id)}:{key.partition}"


class ShareStates:
    """The shards of this broker by partition."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics = ImageTopics(lambda: broker.image)
        self._loaded: dict[int, _Loaded] = {}
        self._loading: set[int] = set()
        self._flush_due: set[Log] = set()
        self._to_load, self._load_queue = trio.open_memory_channel[int](float("inf"))

    # Requests ----------------------------------------------------------------------------------------------

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Give a share partition a state; the topic is made when it is needed first. Raises KafkaError."""
        if SHARE_STATE_TOPIC not in self._broker.image.topics_by_name:
            await create_missing_topics(self._broker, [SHARE_STATE_TOPIC])
        loaded = self._find(key)
        now_ms = self._broker.now_ms()
        self._append(loaded, [loaded.shard.initialize(key, state_epoch, start_offset, now_ms)], now_ms)
        await self.flush_if_due()

    def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        """The state of a share partition for its leader. Raises KafkaError."""
        loaded = self._find(key)
        state, record = loaded.shard.read(key, leader_epoch)
        if record is not None:
            self._append(loaded, [record], self._broker.now_ms())
        return state

    def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        """Keep what changed. Raises KafkaError. `flush_if_due` may have to be awaited before anybody is told."""
        loaded = self._find(key)
        now_ms = self._broker.now_ms()
        updates = self._broker.config.get_int("share.coordinator.snapshot.update.records.per.snapshot")
        self._append(loaded, [loaded.shard.write(key, write, now_ms, updates)], now_ms)

    async def delete(self, key: SharePartitionKey) -> None:
        """Forget a share partition. Raises KafkaError."""
        loaded = self._find(key)
        record = loaded.shard.delete(key)
        if record is not None:
            self._append(loaded, [record], self._broker.now_ms())
            await self.flush_if_due()

    def summary(self, key: SharePartitionKey) -> ShareState | None:
        """The state of a share partition for whoever asks. Raises KafkaError."""
        return self._find(key).shard.summary(key)

    async def flush_if_due(self) -> None:
        """Have on the disk what must be there before an answer."""
        while self._flush_due:
            await trio.to_thread.run_sync(self._flush_due.pop().flush)

    def _find(self, key: SharePartitionKey) -> _Loaded:
        if self._broker.stopping:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topic = self._broker.image.topics_by_name.get(SHARE_STATE_TOPIC)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        index = coordinator_partition(coordinator_key(key), len(topic.partitions))
        if index in self._loaded:
            return self._loaded[index]
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def _append(self, loaded: _Loaded, records: list[ShareStateRecord], now_ms: int) -> None:
        encoded = [
            Record(number, now_ms, *encode_share_record(record)) for number, record in enumerate(records)
        ]
        codec = self._broker.config.get_int("share.coordinator.state.topic.compression.codec")
        batch = memoryview(bytearray(build_batch(encoded, codec=codec)))
        result = loaded.partition.append(batch, now_ms, AppendOrigin.COORDINATOR)
        if result.flush_due:
            self._flush_due.add(loaded.partition.log)
        for number, record in enumerate(records):
            loaded.shard.apply(record, result.base_offset + number)

    # Loading -----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take over the partitions that are there."""
        for partition in self._broker.partitions.of_topic(SHARE_STATE_TOPIC).values():
            self._take_over(partition)

    async def run(self) -> None:
        """Load what is to be loaded, and tidy up now and then, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tidy)
            async for index in self._load_queue:
                partition = self._broker.partitions.of_topic(SHARE_STATE_TOPIC).get(index)
                if partition is not None:
                    await self._load(partition)
                self._loading.discard(index)

    def follow(self, delta: MetadataDelta) -> None:
        """The metadata changed: partitions of states come and go, and states go with their topics."""
        if any(topic.name == SHARE_STATE_TOPIC for topic in delta.deleted_topics):
            self._loaded.clear()
        partitions = self._broker.partitions.of_topic(SHARE_STATE_TOPIC)
        known = self._loaded.keys() | self._loading  # of states made while the partitions were
        for topic, index in delta.new_partitions:
            if topic.name == SHARE_STATE_TOPIC and index in partitions and index not in known:
                self._take_over(partitions[index])
        if delta.deleted_topics:
            for loaded in self._loaded.values():
                self._try_append(loaded, loaded.shard.forget_deleted_topics())

    def _take_over(self, partition: Partition) -> None:
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._loaded[partition.index] = _Loaded(ShareStateShard(self._topics), partition)
        else:
            self._loading.add(partition.index)
            self._to_load.send_nowait(partition.index)

    async def _load(self, partition: Partition) -> None:
        shard = ShareStateShard(self._topics)
        slice_bytes = self._broker.config.get_int("share.coordinator.load.buffer.size")
        offset, end_offset = partition.log.log_start_offset, partition.log.log_end_offset
        try:
            while offset < end_offset:
                offset = await trio.to_thread.run_sync(
                    _load_slice, shard, partition.log, offset, end_offset, slice_bytes
                )
        except KafkaError as error:
            log.error("share group state not loaded partition=%s error=%s", partition.log.name, error)
            return
        loaded = self._loaded[partition.index] = _Loaded(shard, partition)
        self._try_append(loaded, shard.forget_deleted_topics())
        log.info("share group state loaded partition=%s states=%d", partition.log.name, len(shard.states))

    # Chores ------------------------------------------------------------------------------------------------

    async def _tidy(self) -> None:
        while True:
            config = self._broker.config
            await trio.sleep(config.get_int("share.coordinator.state.topic.prune.interval.ms") / 1000)
            cold_ms = config.get_int("share.coordinator.cold.partition.snapshot.interval.ms")
            for loaded in list(self._loaded.values()):
                self._try_append(loaded, loaded.shard.cold_snapshots(self._broker.now_ms(), cold_ms))
                source = loaded.partition.log
                needed_from = loaded.shard.needed_from(source.log_end_offset)
                if needed_from > source.log_start_offset:
                    source.delete_records_before(needed_from)
                await trio.lowlevel.checkpoint()

    def _try_append(self, loaded: _Loaded, records: list[ShareStateRecord]) -> None:
        """Nobody waits for it: it is done another time when it fails."""
        if not records:
            return
        try:
            self._append(loaded, records, self._broker.now_ms())
        except KafkaError as error:
            log.error("share group state not written partition=%s error=%s", loaded.partition.log.name, error)


def _load_slice(shard: ShareStateShard, source: Log, offset: int, end_offset: int, slice_bytes: int) -> int:
    """Replay one slice into a shard that nobody uses yet, and return where to go on."""
    found = source.read(offset, slice_bytes, upto=end_offset, at_least_one=True).records
    if found is None:
        return end_offset
    for batch in iter_batches(memoryview(found.read())):
        if batch.next_offset <= offset:
            continue
        offset = batch.next_offset
        if batch.is_control:
            continue
        for raw in iter_records(batch):
            if raw.key is None:
                continue
            try:
                shard.apply(decode_share_record(raw.key, raw.value), raw.offset)
            except (UnknownRecordType, MalformedMessage) as error:
                log.warning("record not understood log=%s offset=%d: %s", source.name, raw.offset, error)
    return offset
