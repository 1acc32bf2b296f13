"""What the coordinator does unasked: it aborts transactions that take too long and forgets ids that nobody uses."""

from __future__ import annotations

import logging
from collections.abc import Mapping
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
                await trio.lowlevel.checkpoint()


async def _abort(broker: Broker, loaded: LoadedShard, transactional_id: str, endings: Endings) -> None:
    await broker.producer_ids.stock_up()
    now_ms = broker.now_ms()
    if loaded.is_dropped or not loaded.shard.is_timed_out(transactional_id, now_ms):
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
            try:
                await _forget(broker, loaded)
            except KafkaError as error:
                log.error("unused ids not removed partition=%s error=%s", loaded.partition.log.name, error)
            await trio.lowlevel.checkpoint()


async def _forget(broker: Broker, loaded: LoadedShard) -> None:
    expiration_ms = broker.config.get_int("transactional.id.expiration.ms")
    shard = loaded.shard
    batch: list[TransactionRecord] = []
    size = 0
    for transactional_id in shard.expired(broker.now_ms(), expiration_ms):
        # Asked again, since a producer may have come while an earlier batch was written.
        if shard.is_expired(transactional_id, broker.now_ms(), expiration_ms):
            batch.append(TransactionRecord(transactional_id, None))
            size += len(transactional_id)
        if size > _TOMBSTONE_BATCH_BYTES:
            await loaded.forget(batch, broker.now_ms())
            await trio.lowlevel.checkpoint()
            batch, size = [], 0
    if batch:
        await loaded.forget(batch, broker.now_ms())
