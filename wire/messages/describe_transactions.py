"""DescribeTransactions (65): the state of transactional ids, with the partitions of an open transaction (KIP-664)."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.DESCRIBE_TRANSACTIONS, kind="request", versions=(0, 0), flexible=0)
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = array(STRING)


@structure
class TopicData:
    topic: str = field(STRING)
    partitions: list[int] = array(INT32)


@structure
class TransactionState:
    error_code: int = field(INT16)
    transactional_id: str = field(STRING)
    transaction_state: str = field(STRING)
    transaction_timeout_ms: int = field(INT32)
    transaction_start_time_ms: int = field(INT64)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    topics: list[TopicData] = array(TopicData)


@message(api_key=ApiKey.DESCRIBE_TRANSACTIONS, kind="response", versions=(0, 0), flexible=0)
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = field(INT32)
    transaction_states: list[TransactionState] = array(TransactionState)
