"""The most ordinary requests, answered in one go where the compiled readers are there (see ottla.native).

A request that such a reader knows was read, looked through and found to be ordinary; what is left is to hold it against
the rules of its topic and to append it. At anything else, an unknown partition or a rule that is broken among it,
nothing has happened and the request goes the usual way, which knows every case and the words for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.log_store.validation import FOREVER_MS
from ottla.native import speed
from ottla.server.gathered_appends import GatheredAppends
from ottla.server.internal_topics import INTERNAL_TOPICS
from ottla.server.log_ends import end_of_log
from ottla.server.output import Outbox
from ottla.server.parked import ParkedAnswer
from ottla.server.room_ahead import make_room_ahead
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import KafkaError
from ottla.wire.records.header import BatchView, crc_matches, patch

if TYPE_CHECKING:
    from ottla.log_store.batch_run import BatchHead
    from ottla.log_store.log import Log
    from ottla.server.broker import Broker
    from ottla.server.ready_clients import ReadyClients

# What has to be done before a request can be answered.
Preparation = Callable[[], Coroutine[Any, Any, None]]
# Takes a frame and puts the answer to it into the outbox, or returns what waits for it, or what has to be done before
# it is asked again. False if the request has to go the usual way.
QuickAnswer = Callable[[memoryview, Outbox], ParkedAnswer | Preparation | bool]

_TOPIC_IDS_SINCE = 13
# Kinds of batches, as native/produce.c tells them: of a small one the checksum has been looked at.
_DAMAGED, _SMALL, _COMPRESSED = 0, 1, 3
_QUICK_FETCH = "ottla.server.quick_fetch"
_HEADER_BYTES = 8
_VERSION_AT = 3  # the low byte; no API has more of them


def quick_answers(broker: Broker, clients: ReadyClients | None) -> dict[int, QuickAnswer]:
    """What there is, by API key."""
    if speed is None:
        return {}
    return {
        ApiKey.PRODUCE: _produce(broker, clients),
        ApiKey.FETCH: _fetch(broker),
        ApiKey.LIST_OFFSETS: _list_offsets(broker),
    }


def _produce(broker: Broker, clients: ReadyClients | None) -> QuickAnswer:
    assert speed is not None
    read_produce, produce_answer = speed.read_produce, speed.produce_answer
    by_name, by_id = broker.partitions.indexes
    now = broker.now_ms
    gathered = None if clients is None else GatheredAppends(clients, now, produce_answer)

    def answer(frame: memoryview, outbox: Outbox) -> Preparation | bool:
        found = read_produce(frame)
        if found is None:
            return False
        (
            version,
            correlation_id,
            topic,
            index,
            begin,
            end,
            is_transactional,
            kind,
            keyless,
            least_timestamp,
            head,
        ) = found
        partition = (by_name if version < _TOPIC_IDS_SINCE else by_id).get(topic, {}).get(index)
        if partition is None or partition.topic in INTERNAL_TOPICS:
            return False
        now_ms = now()
        log = partition.log
        rules = log.rules
        if (
            kind == _DAMAGED
            or not rules.takes_batches_as_they_are
            or end - begin > rules.max_message_bytes
            or (keyless and rules.needs_keys)
            or head[1] - now_ms > rules.after_max_ms
            or now_ms - least_timestamp > rules.before_max_ms
            or log.flush_messages != FOREVER_MS
            or (is_transactional and not _goes_on(log, head))
            or (kind == _COMPRESSED and rules.target_codec is not None)
        ):
            return False
        file = log.segments[-1].file
        if file.size + end - begin > file.room_mark:
            if outbox.settle is not None:
                outbox.settle()
            return partial(make_room_ahead, log, end - begin)
        data = frame[begin:end]
        if kind == _SMALL and gathered is not None and gathered.is_open():
            gathered.add(data, head, (partition, outbox, version, correlation_id, topic, index))
            return True
        if outbox.settle is not None:
            outbox.settle()
        try:
            if kind != _SMALL and not crc_matches(data):
                return False
            offset = partition.append_plain(data, head, now_ms, is_transactional=is_transactional)
            if offset is not None:
                append_time_ms, start_offset = -1, log.log_start_offset
            else:
                batch = BatchView(data)
                offset, _, append_time_ms, start_offset, _, _ = partition.append_prepared(batch, now_ms)
        except KafkaError:
            patch(data, 0, 0, -1)
            return False
        outbox.add_bytes(
            produce_answer(version, correlation_id, topic, index, offset, append_time_ms, start_offset)
        )
        return True

    return answer


def _goes_on(log: Log, head: BatchHead) -> bool:
    """Whether the transaction of a batch has begun in this partition before."""
    _, _, producer_id, producer_epoch, _ = head
    producer = log.producers.producers.get(producer_id)
    return producer is not None and producer.has_ongoing_txn(producer_epoch)


def _fetch(broker: Broker) -> QuickAnswer:
    """As soon as its code is there, which the usual handler brings: a start needs none of it."""
    quick: QuickAnswer | None = None
    ready_versions = broker.registry[ApiKey.FETCH].ready_versions

    def answer(frame: memoryview, outbox: Outbox) -> ParkedAnswer | Preparation | bool:
        nonlocal quick
        if len(frame) < _HEADER_BYTES or frame[_VERSION_AT] not in ready_versions:
            return False  # its codecs may be needed when it has waited
        if quick is None:
            make = getattr(sys.modules.get(_QUICK_FETCH), "quick_fetch", None)
            if make is None:
                return False
            quick = make(broker)
        if outbox.settle is not None:
            outbox.settle()
        return quick(frame, outbox)

    return answer


def _list_offsets(broker: Broker) -> QuickAnswer:
    assert speed is not None
    read_list_offsets, list_offsets_answer = speed.read_list_offsets, speed.list_offsets_answer
    by_name, _ = broker.partitions.indexes

    def answer(frame: memoryview, outbox: Outbox) -> bool:
        found = read_list_offsets(frame)
        if found is None:
            return False
        (
            version,
            correlation_id,
            replica_id,
            isolation_level,
            topic,
            index,
            current_leader_epoch,
            timestamp,
        ) = found
        partition = by_name.get(topic, {}).get(index)
        if partition is None or -1 != current_leader_epoch != partition.leader_epoch:
            return False
        if outbox.settle is not None:
            outbox.settle()
        offset, leader_epoch = end_of_log(partition, timestamp, replica_id, isolation_level)
        outbox.add_bytes(list_offsets_answer(version, correlation_id, topic, index, offset, leader_epoch))
        return True

    return answer
