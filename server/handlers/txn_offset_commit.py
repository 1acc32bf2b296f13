"""TxnOffsetCommit (28), versions 0-5: keep how far a group has read, once a transaction commits.

Topics and partitions that do not exist are refused one by one; the others are handed to the group, as soon as the
transaction's coordinator knows that the transaction writes to the group's partition.

- Below 2 clients do not know COORDINATOR_LOAD_IN_PROGRESS and are told COORDINATOR_NOT_AVAILABLE (KAFKA-7296).
- 3 says which member commits. 4 may be answered TRANSACTION_ABORTABLE.
- 5 adds the group to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from collections.abc import Coroutine
from copy import copy
from functools import partial
from typing import Any

from ottla.group_coordinator.txn_offset_requests import commit_error
from ottla.log_store.verification import Verification
from ottla.server.context import RequestContext
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.registry import serves
from ottla.server.topic_pieces import ask_in_pieces, put_together
from ottla.server.transactions.verification import (
    TransactionalProducer,
    ask_coordinator,
    begin_verification,
)
from ottla.server.turns import work_in_thread_if
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
    known, refused = await work_in_thread_if(context.has_many_elements, _sorted_out, context, request.topics)
    if not known:
        return TxnOffsetCommitResponse(topics=refused)
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        verification = await _verify(context, request, context.broker.groups.partition_of(request.group_id))
    except KafkaError as error:
        answers = [_refuse(context, known, error)]
    else:
        answers = await ask_in_pieces(known, partial(_commit_known, context, request, verification, refused))
    return TxnOffsetCommitResponse(topics=put_together([refused, *(answer.topics for answer in answers)]))


def _commit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    verification: Verification | None,
    topics: list[TxnOffsetCommitRequestTopic],
) -> TxnOffsetCommitResponse | Coroutine[Any, Any, TxnOffsetCommitResponse]:
    """The group's answer to these topics, or a coroutine of it while its log is flushed."""
    asked = copy(request)
    asked.topics = topics
    try:
        answer = context.broker.groups.commit_in_transaction(context, asked, verification)
    except KafkaError as error:
        return _refuse(context, topics, error)
    return answer if isinstance(answer, TxnOffsetCommitResponse) else _flushed(context, topics, answer)


def _commit_known(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    verification: Verification | None,
    refused: list[TxnOffsetCommitResponseTopic],
    topics: list[TxnOffsetCommitRequestTopic],
) -> TxnOffsetCommitResponse | Coroutine[Any, Any, TxnOffsetCommitResponse]:
    """The same, as far as they still exist."""
    known, unknown = _sorted_out(context, topics)
    refused.extend(unknown)
    return _commit(context, request, verification, known) if known else TxnOffsetCommitResponse()


async def _flushed(
    context: RequestContext,
    topics: list[TxnOffsetCommitRequestTopic],
    waiting: Coroutine[Any, Any, TxnOffsetCommitResponse],
) -> TxnOffsetCommitResponse:
    try:
        return await waiting
    except KafkaError as error:
        return _refuse(context, topics, error)


def _refuse(
    context: RequestContext, topics: list[TxnOffsetCommitRequestTopic], error: KafkaError
) -> TxnOffsetCommitResponse:
    code = error.code
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < _LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return commit_error(TxnOffsetCommitRequest(topics=topics), code)


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


def _sorted_out(
    context: RequestContext, topics: list[TxnOffsetCommitRequestTopic]
) -> tuple[list[TxnOffsetCommitRequestTopic], list[TxnOffsetCommitResponseTopic]]:
    """What exists, and the answer to the rest."""
    known: list[TxnOffsetCommitRequestTopic] = []
    refused: list[TxnOffsetCommitResponseTopic] = []
    for topic in topics:
        _sort_out(context, topic, known, refused)
    return known, refused


def _sort_out(
    context: RequestContext,
    topic: TxnOffsetCommitRequestTopic,
    known: list[TxnOffsetCommitRequestTopic],
    refused: list[TxnOffsetCommitResponseTopic],
) -> None:
    """Part the partitions of a topic into those that exist and the others."""
    found = context.broker.image.topics_by_name.get(topic.name)
    existing = found.partitions if found is not None else {}
    unknown: list[TxnOffsetCommitResponsePartition] = []
    valid = []
    for each in topic.partitions:
        if each.partition_index in existing:
            valid.append(each)
        else:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.append(TxnOffsetCommitResponsePartition(each.partition_index, error))
    if unknown or found is None:
        refused.append(TxnOffsetCommitResponseTopic(topic.name, unknown))
    if valid:
        known.append(TxnOffsetCommitRequestTopic(topic.name, valid))
