"""What the coordinator does unasked: it aborts transactions that take too long and forgets ids that nobody uses."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import trio

from ottla.server.transactions.endings import Endings
from ottla.server.transactions.loaded import LoadedShard
from ottla.txn_coordinator.records import TransactionRecord
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_TOMBSTONE_BATCH_BYTES = 100_000


async def abort_timed_out(broker: Broker, shards: Mapping[int, LoadedShard], endings: Endings) -> None:
    """Look for timed-out transactions again and again, and abort them."""
    while True:
        interval_ms = broker.config.get_int("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        await trio.sleep(interval_ms / 1000)
        for loaded in list(shards.values()):
            for transactional_id in loaded.shard.timed_out(broker.now_ms()):
                try:
                    await _abort(broker, loaded, transactional_id, endings)
                except Exception:  # a bug with one transaction must not keep the others from being aborted
                    log.exception("timed-out transaction not aborted id=%s", transactional_id)


async def _abort(broker: Broker, loaded: LoadedShard, transactional_id: str, endings: Endings) -> None:
    await broker.producer_ids.stock_up()
    now_ms = broker.now_ms()
    if loaded.is_dropped or transactional_id not in loaded.shard.timed_out(now_ms):
        return  # it has ended while another was aborted
    decision = loaded.shard.abort_timed_out(transactional_id, now_ms)
    try:
        await loaded.write(transactional_id, decision, now_ms)
    except KafkaError as error:
        log.error("timed-out transaction not aborted id=%s error=%s", transactional_id, error)
        return
    log.info("transaction timed out id=%s", transactional_id)
    await endings.finish(loaded, transactional_id)


async def forget_unused_ids(broker: Broker, shards: Mapping[int, LoadedShard]) -> None:
    """Look for transactional ids that have not been used for long again and again, and remove them."""
    while True:
        interval_ms = broker.config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms")
        await trio.sleep(interval_ms / 1000)
        for loaded in list(shards.values()):
            now_ms = broker.now_ms()
            expiration_ms = broker.config.get_int("transactional.id.expiration.ms")
            for records in _batches(list(loaded.shard.expired(now_ms, expiration_ms))):
                try:
                    await loaded.forget(records, now_ms)
                except KafkaError as error:
                    log.error(
                        "unused ids not removed partition=%s error=%s", loaded.partition.log.name, error
                    )
                    break
            await trio.lowlevel.checkpoint()


def _batches(records: Iterable[TransactionRecord]) -> Iterator[list[TransactionRecord]]:
    batch: list[TransactionRecord] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record.transactional_id)
        if size > _TOMBSTONE_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
