"""TxnOffsetCommit (28), versions 0-5: keep how far a group has read, once a transaction commits.

Topics and partitions that do not exist are refused one by one; the others are handed to the group, as soon as the
transaction's coordinator knows that the transaction writes to the group's partition.

- Below 2 clients do not know COORDINATOR_LOAD_IN_PROGRESS and are told COORDINATOR_NOT_AVAILABLE (KAFKA-7296).
- 3 says which member commits. 4 may be answered TRANSACTION_ABORTABLE.
- 5 adds the group to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from ottla.group_coordinator.txn_offset_requests import commit_error
from ottla.log_store.verification import Verification
from ottla.server.context import RequestContext
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.registry import serves
from ottla.server.transactions.verification import (
    TransactionalProducer,
    ask_coordinator,
    begin_verification,
)
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_LOADING_SINCE = 2
_ABORTABLE_SINCE = 4
_ADDS_PARTITIONS_SINCE = 5
_NO_SEQUENCE = -1


@serves(TxnOffsetCommitRequest)
async def handle_txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Commit what can be committed."""
    known: list[TxnOffsetCommitRequestTopic] = []
    refused: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        _sort_out(context, topic, known, refused)
    if not known:
        return TxnOffsetCommitResponse(topics=refused)
    request.topics = known
    try:
        response = await _commit(context, request)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < _LOADING_SINCE:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        response = commit_error(request, code)
    if refused:
        response.topics = _merge(refused, response.topics)
    return response


async def _commit(context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    groups = context.broker.groups
    verification = await _verify(context, request, groups.partition_of(request.group_id))
    return await groups.commit_in_transaction(context, request, verification)


async def _verify(
    context: RequestContext, request: TxnOffsetCommitRequest, partition: int
) -> Verification | None:
    """What lets the offsets be written to the group's partition; None if the transaction has written there."""
    producer = TransactionalProducer(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        adds_partitions=context.api_version >= _ADDS_PARTITIONS_SINCE,
        knows_abortable=context.api_version >= _ABORTABLE_SINCE,
    )
    name = (OFFSETS_TOPIC, partition)
    verified = begin_verification(context.broker, producer, {name: _NO_SEQUENCE})
    await ask_coordinator(context.broker, producer, verified)
    error = verified.errors.get(name)
    if error is not None:
        raise KafkaError(error)
    return verified.verifications.get(name)


def _sort_out(
    context: RequestContext,
    topic: TxnOffsetCommitRequestTopic,
    known: list[TxnOffsetCommitRequestTopic],
    refused: list[TxnOffsetCommitResponseTopic],
) -> None:
    """Part the partitions of a topic into those that exist and the others."""
    found = context.broker.image.topics_by_name.get(topic.name)
    existing = found.partitions if found is not None else {}
    unknown = [
        TxnOffsetCommitResponsePartition(each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for each in topic.partitions
        if each.partition_index not in existing
    ]
    if unknown or found is None:
        refused.append(TxnOffsetCommitResponseTopic(topic.name, unknown))
    valid = [each for each in topic.partitions if each.partition_index in existing]
    if valid:
        known.append(TxnOffsetCommitRequestTopic(topic.name, valid))


def _merge(
    refused: list[TxnOffsetCommitResponseTopic], answered: list[TxnOffsetCommitResponseTopic]
) -> list[TxnOffsetCommitResponseTopic]:
    """One entry for each topic, refused partitions first."""
    merged = {topic.name: topic for topic in refused}
    for topic in answered:
        entry = merged.setdefault(topic.name, topic)
        if entry is not topic:
            entry.partitions += topic.partitions
    return list(merged.values())
