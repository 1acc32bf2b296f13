"""The transaction coordinator: which shard an id belongs to, loading shards, carrying out what they decide.

This broker coordinates the transactional ids of every partition of `__transaction_state` that it leads. Until a
partition has been replayed its ids are COORDINATOR_LOAD_IN_PROGRESS, which clients wait out; a new partition is
ready at once.

A commit is one record that says so, the markers, and one record that says they are written, mostly without a wait. Its
producer is answered when all this is done, so that it need not ask again before its next transaction; if a marker has
to wait, it is answered without, since the commit is decided.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from ottla.log_store.durability import has_flush_policy
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.metadata.image import MetadataDelta
from ottla.server.internal_topics import TRANSACTIONS_TOPIC, coordinator_partition
from ottla.server.partition import Partition
from ottla.server.transactions.chores import abort_timed_out, forget_unused_ids
from ottla.server.transactions.endings import Endings
from ottla.server.transactions.loaded import LoadedShard
from ottla.server.transactions.loading import TransactionLoader
from ottla.txn_coordinator.decision import Answer
from ottla.txn_coordinator.init_producer_id import InitProducerId
from ottla.txn_coordinator.shard import TransactionShard
from ottla.txn_coordinator.state import ENDING
from ottla.txn_coordinator.transaction import TopicPartition, Transaction
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_FIRST_RETRY_SECONDS = 1
_LAST_RETRY_SECONDS = 60
_IMPLICIT_ADD_VERSION = 2  # only clients of transactions V2 leave the adding to the broker


class TransactionCoordinator:
    """The shards of this broker by partition."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._loaded: dict[int, LoadedShard] = {}
        self._loading: set[int] = set()
        self._failed_loads: dict[int, int] = {}
        self._endings = Endings(broker)
        self._to_load, self._load_queue = trio.open_memory_channel[int](float("inf"))

    # Requests ----------------------------------------------------------------------------------------------

    async def init_producer_id(
        self, transactional_id: str, transaction_timeout_ms: int, producer_id: int, producer_epoch: int
    ) -> Answer:
        """Make whoever asks the producer of a transactional id, and fence all others. Raises KafkaError."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        longest_ms = self._broker.config.get_int("transaction.max.timeout.ms")
        if not 0 < transaction_timeout_ms <= longest_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        await self._broker.producer_ids.stock_up()
        loaded = self._find(transactional_id)
        now_ms = self._broker.now_ms()
        wanted = InitProducerId(transaction_timeout_ms, producer_id, producer_epoch)
        decision = loaded.shard.init_producer_id(transactional_id, wanted, now_ms)
        with trio.CancelScope(
            shield=True
        ):  # a client that hangs up must not leave a transaction half aborted
            await loaded.write(transactional_id, decision, now_ms)
            await self._endings.finish(loaded, transactional_id)
        return decision.answer

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        client_version: int = _IMPLICIT_ADD_VERSION,
    ) -> dict[TopicPartition, ErrorCode]:
        """Put partitions into the transaction, all or none, and say what became of each."""
        try:
            loaded = self._find(transactional_id)
            now_ms = self._broker.now_ms()
            decision = loaded.shard.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, client_version, now_ms
            )
            await loaded.write(transactional_id, decision, now_ms)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        return dict.fromkeys(partitions, decision.answer.error)

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Which of the partitions are in the transaction (KIP-890)."""
        try:
            shard = self._find(transactional_id).shard
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        return shard.verify(transactional_id, producer_id, producer_epoch, partitions)

    async def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        client_version: int,
    ) -> Answer:
        """Commit or abort. Raises KafkaError."""
        await self._broker.producer_ids.stock_up()
        with trio.CancelScope(shield=True):  # a client that hangs up must not leave a transaction half ended
            answer = await self.carry_out_end(
                transactional_id,
                producer_id,
                producer_epoch,
                committed=committed,
                client_version=client_version,
            )
        return answer  # noqa: RET504 - for all that types tell, a scope may go on after an exception

    async def carry_out_end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        client_version: int,
    ) -> Answer:
        """The same for who has a producer id in stock, and is not cancelled meanwhile."""
        loaded = self._find(transactional_id)
        now_ms = self._broker.now_ms()
        decision = loaded.shard.end(
            transactional_id,
            producer_id,
            producer_epoch,
            committed=committed,
            client_version=client_version,
            now_ms=now_ms,
        )
        if decision.value is not None:
            await loaded.write(transactional_id, decision, now_ms)
            await self._endings.finish(loaded, transactional_id)
        return decision.answer

    # What need not wait ------------------------------------------------------------------------------------

    def writes_at_once(self, transactional_id: str) -> bool:
        """Whether `add_partitions` need not wait."""
        loaded = self._loaded_of(transactional_id)
        return loaded is None or not has_flush_policy(loaded.partition.log)

    def adds_at_once(self, transactional_id: str) -> bool:
        """The same, and nobody would rather wait for the end of the last transaction than be refused."""
        loaded = self._loaded_of(transactional_id)
        if loaded is None:
            return True
        transaction = loaded.shard.transactions.get(transactional_id)
        is_ending = transaction is not None and transaction.state in ENDING
        return not is_ending and not has_flush_policy(loaded.partition.log)

    def ends_at_once(self, transactional_id: str) -> bool:
        """Whether `carry_out_end` need not wait, and there is a producer id in stock."""
        if not self._broker.producer_ids.has_stock:
            return False
        loaded = self._loaded_of(transactional_id)
        if loaded is None:
            return True
        transaction = loaded.shard.transactions.get(transactional_id)
        return not has_flush_policy(loaded.partition.log) and (
            transaction is None or self._endings.finishes_at_once(transaction)
        )

    def _loaded_of(self, transactional_id: str) -> LoadedShard | None:
        try:
            return self._find(transactional_id)
        except KafkaError:
            return None

    # Looking -----------------------------------------------------------------------------------------------

    def transaction(self, transactional_id: str) -> Transaction:
        """Raises KafkaError when the id is not known, not ready or not ours."""
        found = self._find(transactional_id).shard.transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def transactions(self) -> list[Transaction]:
        """Every transactional id. Raises KafkaError while some are being loaded."""
        if self._broker.stopping:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [each for loaded in self._loaded.values() for each in loaded.shard.transactions.values()]

    def _find(self, transactional_id: str) -> LoadedShard:
        if self._broker.stopping:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        topic = self._broker.image.topics_by_name.get(TRANSACTIONS_TOPIC)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        index = coordinator_partition(transactional_id, len(topic.partitions))
        loaded = self._loaded.get(index)
        if loaded is not None:
            return loaded
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # Loading -----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take over the partitions that are there."""
        for partition in self._broker.partitions.of_topic(TRANSACTIONS_TOPIC).values():
            self._take_over(partition)

    async def run(self) -> None:
        """Load, finish what is unfinished, abort what takes too long and forget unused ids, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._endings.run)
            nursery.start_soon(abort_timed_out, self._broker, self._loaded, self._endings)
            nursery.start_soon(forget_unused_ids, self._broker, self._loaded)
            async for index in self._load_queue:
                partition = self._broker.partitions.of_topic(TRANSACTIONS_TOPIC).get(index)
                is_loaded = partition is None or await self._load(partition)
                self._loading.discard(index)
                if is_loaded:
                    self._failed_loads.pop(index, None)
                else:
                    nursery.start_soon(self._load_again, index)

    def follow(self, delta: MetadataDelta) -> None:
        """The metadata changed: partitions of transactions come and go."""
        if any(topic.name == TRANSACTIONS_TOPIC for topic in delta.deleted_topics):
            for loaded in self._loaded.values():
                loaded.is_dropped = True
            self._loaded.clear()
        partitions = self._broker.partitions.of_topic(TRANSACTIONS_TOPIC)
        for topic, index in delta.new_partitions:
            if topic.name == TRANSACTIONS_TOPIC and index in partitions:
                self._take_over(partitions[index])

    def _take_over(self, partition: Partition) -> None:
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._loaded[partition.index] = LoadedShard(self._new_shard(), partition)
        else:
            self._load_soon(partition.index)

    def _load_soon(self, index: int) -> None:
        self._loading.add(index)
        self._to_load.send_nowait(index)

    async def _load_again(self, index: int) -> None:
        """A disk may be slow or full for a while; without this only a restart would help."""
        failures = self._failed_loads.get(index, 0)
        self._failed_loads[index] = failures + 1
        delay_seconds = min(_FIRST_RETRY_SECONDS * 2**failures, _LAST_RETRY_SECONDS)
        log.error("partition=%s-%d is loaded again in %d s", TRANSACTIONS_TOPIC, index, delay_seconds)
        await trio.sleep(delay_seconds)
        partition = self._broker.partitions.of_topic(TRANSACTIONS_TOPIC).get(index)
        if partition is None or partition.log.is_closed or self._broker.stopping:
            return
        if index not in self._loaded and index not in self._loading:  # nobody made the topic anew meanwhile
            self._load_soon(index)

    async def _load(self, partition: Partition) -> bool:
        """Whether the shard is at work. Until then its ids are NOT_COORDINATOR, as in Kafka."""
        shard = self._new_shard()
        slice_bytes = self._broker.config.get_int("transaction.state.log.load.buffer.size")
        loader = TransactionLoader(shard, partition.log, slice_bytes)
        try:
            while not loader.is_done:
                await trio.to_thread.run_sync(loader.load_slice)
        except KafkaError as error:
            log.error("transactions not loaded partition=%s error=%s", partition.log.name, error)
            return False
        except Exception:
            log.exception("transactions not loaded partition=%s", partition.log.name)
            return False
        if self._broker.partitions.of_topic(TRANSACTIONS_TOPIC).get(partition.index) is not partition:
            return True  # the topic was deleted meanwhile
        loaded = self._loaded[partition.index] = LoadedShard(shard, partition)
        log.info(
            "transactions loaded partition=%s records=%d ids=%d",
            partition.log.name,
            loader.record_count,
            len(shard.transactions),
        )
        for transaction in shard.ending():
            self._endings.finish_later(loaded, transaction.transactional_id)
        return True

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(self._broker.producer_ids.take, self._transaction_version)

    def _transaction_version(self) -> int:
        return self._broker.image.features.get(TRANSACTION_VERSION, 0)
