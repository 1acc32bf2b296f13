"""Carrying out the end of transactions: markers into all partitions, then the record that the transaction is complete.

Mostly that happens with the request, at once. Partitions that cannot take a marker now (offline, or their groups are
being loaded) keep the transaction in PREPARE_COMMIT or PREPARE_ABORT, and one task tries again until it is complete; it
also finishes what a crash has left.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ottla.server.transactions.loaded import LoadedShard
from ottla.server.transactions.markers import Marker, are_written_at_once, write_markers
from ottla.txn_coordinator.state import ENDING, PREPARE_COMMIT
from ottla.txn_coordinator.transaction import TopicPartition, Transaction
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 5.0
_MANY_PARTITIONS = 1000

# The partition has seen a later epoch of the producer or of its coordinator, so the transaction is over there.
_OVER = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class Endings:
    """Ends transactions, now or later."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._stalled: dict[str, LoadedShard] = {}
        self._at_work: dict[str, LoadedShard] = {}
        self._news = trio.Event()

    async def finish(self, loaded: LoadedShard, transactional_id: str) -> None:
        """Write the markers of a transaction whose end is in the log, and complete it; what fails is tried again.

        There is one at a time for an id: a second one could write its markers into the next transaction.
        """
        busy = self._at_work.get(transactional_id)
        if busy is None:
            self._at_work[transactional_id] = loaded
            try:
                await self._finish(loaded, transactional_id)
            except Exception:  # a bug; the id would else be neither open nor ended
                self.finish_later(loaded, transactional_id)
                raise
            finally:
                del self._at_work[transactional_id]
        elif busy is not loaded:  # loaded again meanwhile, with its own idea of what is written
            self.finish_later(loaded, transactional_id)

    async def _finish(self, loaded: LoadedShard, transactional_id: str) -> None:
        transaction = loaded.shard.transactions.get(transactional_id)
        if transaction is None or transaction.state not in ENDING or loaded.is_dropped:
            return
        try:
            if transaction.partitions:
                await self._write_markers(loaded, transaction)
            if not transaction.partitions:
                now_ms = self._broker.now_ms()
                decision = loaded.shard.complete(transactional_id, now_ms)
                await loaded.write(transactional_id, decision, now_ms)
                return
        except KafkaError as error:
            log.error("transaction not completed id=%s error=%s", transactional_id, error)
        self.finish_later(loaded, transactional_id)

    def finishes_at_once(self, transaction: Transaction) -> bool:
        """Whether `finish` need not wait."""
        return are_written_at_once(self._broker, transaction.partitions)

    def finish_later(self, loaded: LoadedShard, transactional_id: str) -> None:
        self._stalled[transactional_id] = loaded
        self._news.set()

    async def run(self) -> None:
        """Finish what could not be finished at once, until cancelled."""
        delay = _FIRST_RETRY_S
        while True:
            if not self._stalled:
                self._news = trio.Event()
                await self._news.wait()
                delay = _FIRST_RETRY_S
            stalled, self._stalled = self._stalled, {}
            for transactional_id, loaded in stalled.items():
                try:
                    await self.finish(loaded, transactional_id)
                except Exception:  # a bug with one transaction must not keep the others from being ended
                    log.exception("transaction not ended id=%s", transactional_id)
                    self.finish_later(loaded, transactional_id)
                await trio.lowlevel.checkpoint()
            if self._stalled:
                await trio.sleep(delay)
                delay = min(2 * delay, _LAST_RETRY_S)

    async def _write_markers(self, loaded: LoadedShard, transaction: Transaction) -> None:
        marker = Marker(
            transaction.producer_id,
            transaction.producer_epoch,
            loaded.partition.leader_epoch,
            transaction.state is PREPARE_COMMIT,
            transaction.client_transaction_version,
        )
        # To have decided that took long enough. So many are never written at once.
        if len(transaction.partitions) > _MANY_PARTITIONS:
            await trio.lowlevel.cancel_shielded_checkpoint()
        results = await write_markers(self._broker, marker, sorted(transaction.partitions))
        written = {partition for partition, error in results.items() if error is ErrorCode.NONE}
        transaction.partitions -= written
        for partition, error in results.items():
            if partition in written:
                continue
            if error in _OVER or not self._exists(partition):
                log.warning(
                    "marker skipped id=%s partition=%s-%d error=%s",
                    transaction.transactional_id,
                    *partition,
                    error.name,
                )
                transaction.partitions.discard(partition)
            else:
                log.info(
                    "marker delayed id=%s partition=%s-%d error=%s",
                    transaction.transactional_id,
                    *partition,
                    error.name,
                )

    def _exists(self, partition: TopicPartition) -> bool:
        """A topic may have been deleted, and even made anew with fewer partitions."""
        topic = self._broker.image.topics_by_name.get(partition[0])
        return topic is not None and partition[1] in topic.partitions
