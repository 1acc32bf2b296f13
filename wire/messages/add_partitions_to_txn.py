"""AddPartitionsToTxn (24): these partitions belong to the transaction.

Versions up to 3 are sent by producers, for one transaction; 2 may answer PRODUCER_FENCED, 3 is flexible. Versions 4
and 5 are sent by brokers, for many transactions at once, and may only ask whether the partitions are in them
(KIP-890); 5 may answer TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class AddPartitionsToTxnTopic:
    name: str = field(STRING)
    partitions: list[int] = array(INT32)


@structure
class AddPartitionsToTxnTransaction:
    transactional_id: str = field(STRING, "4+")
    producer_id: int = field(INT64, "4+")
    producer_epoch: int = field(INT16, "4+")
    verify_only: bool = field(BOOL, "4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "4+")


@message(api_key=ApiKey.ADD_PARTITIONS_TO_TXN, kind="request", versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = field(STRING, "0-3")
    v3_and_below_producer_id: int = field(INT64, "0-3")
    v3_and_below_producer_epoch: int = field(INT16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3")


@structure
class AddPartitionsToTxnPartitionResult:
    partition_index: int = field(INT32)
    partition_error_code: int = field(INT16)


@structure
class AddPartitionsToTxnTopicResult:
    name: str = field(STRING)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


@structure
class AddPartitionsToTxnResult:
    transactional_id: str = field(STRING, "4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "4+")


@message(api_key=ApiKey.ADD_PARTITIONS_TO_TXN, kind="response", versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, "4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )
