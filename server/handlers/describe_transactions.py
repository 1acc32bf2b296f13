"""DescribeTransactions (65), version 0: the state of transactional ids (KIP-664).

While a transaction ends, its partitions are those that have no marker yet.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.txn_coordinator.transaction import by_topic
from ottla.wire.errors import KafkaError
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def _describe(context: RequestContext, transactional_id: str) -> TransactionState:
    try:
        found = context.broker.transactions.transaction(transactional_id)
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[TopicData(each.topic, each.partition_ids) for each in by_topic(found.partitions)],
    )


@serves(DescribeTransactionsRequest)
def handle_describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe every id that is asked for."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(context, each) for each in request.transactional_ids]
    )
