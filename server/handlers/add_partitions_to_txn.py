"""AddPartitionsToTxn (24), versions 0-5: put partitions into a transaction, all or none.

A partition that does not exist, or is one of the broker's own, fails them all; the others are then
OPERATION_NOT_ATTEMPTED.

- 2 a fenced producer is told PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH.
- 4 is for brokers: many transactions at once, and a question whether partitions are in them instead of the adding.
  Only transactions V2 leave the adding to a broker, so what it adds counts as theirs (KIP-890).
"""

from __future__ import annotations

from typing import Any

from ottla.server.at_once import run_at_once
from ottla.server.context import RequestContext
from ottla.server.internal_topics import is_internal_topic
from ottla.server.registry import serves
from ottla.server.turns import work_in_thread_if
from ottla.txn_coordinator.transaction import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_PRODUCER_FENCED_SINCE = 2
_MANY_SINCE = 4


def _unusable(context: RequestContext, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Why the transaction cannot have these partitions; empty when it can."""
    errors: dict[TopicPartition, ErrorCode] = {}
    topics = context.broker.image.topics_by_name
    for topic, index in partitions:
        if context.api_version < _MANY_SINCE and is_internal_topic(topic):
            errors[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic not in topics or index not in topics[topic].partitions:
            errors[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not errors:
        return {}
    return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | errors


async def _add_or_verify(
    context: RequestContext, wanted: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    is_long = context.has_many_elements
    partitions, errors = await work_in_thread_if(is_long, _wanted_and_unusable, context, wanted)
    coordinator = context.broker.transactions
    who = wanted.transactional_id, wanted.producer_id, wanted.producer_epoch
    if not errors and wanted.verify_only:
        errors = await coordinator.verify(*who, partitions)
    elif not errors:
        version = 2 if context.api_version >= _MANY_SINCE else 0
        errors = await coordinator.add_partitions(*who, partitions, version)
    return await work_in_thread_if(is_long, _result, context, wanted, errors)


def _wanted_and_unusable(
    context: RequestContext, wanted: AddPartitionsToTxnTransaction
) -> tuple[list[TopicPartition], dict[TopicPartition, ErrorCode]]:
    partitions = [(topic.name, index) for topic in wanted.topics for index in topic.partitions]
    return partitions, _unusable(context, partitions)


def _result(
    context: RequestContext,
    wanted: AddPartitionsToTxnTransaction,
    errors: dict[TopicPartition, ErrorCode],
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=wanted.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=_told(errors[topic.name, index], context.api_version),
                    )
                    for index in topic.partitions
                ],
            )
            for topic in wanted.topics
        ],
    )


def _told(error: ErrorCode, version: int) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


@serves(AddPartitionsToTxnRequest)
def handle_add_partitions_to_txn(context: RequestContext, request: AddPartitionsToTxnRequest) -> Any:
    """Add to, or ask about, every transaction of the request, at once where that takes no waiting."""
    if context.api_version >= _MANY_SINCE or context.has_many_elements:
        return _answer(context, request)
    if not context.broker.transactions.writes_at_once(request.v3_and_below_transactional_id):
        return _answer(context, request)
    return run_at_once(_answer(context, request))


async def _answer(context: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if context.api_version >= _MANY_SINCE:
        results = [await _add_or_verify(context, wanted) for wanted in request.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    result = await _add_or_verify(
        context,
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        ),
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
