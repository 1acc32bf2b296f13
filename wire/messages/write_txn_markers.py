"""WriteTxnMarkers (27): end transactions in partitions.

Sent by transaction coordinators, and by admins that abort a transaction nobody else ends (KIP-664). Version 2
carries the transaction version, by which the epoch of the marker is judged (KIP-1228).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    array,
    field,
    message,
    structure,
)


@structure
class WritableTxnMarkerTopic:
    name: str = field(STRING)
    partition_indexes: list[int] = array(INT32)


@structure
class WritableTxnMarker:
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    transaction_result: bool = field(BOOL)
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = field(INT32)
    transaction_version: int = field(INT8, "2+", ignorable=True)


@message(api_key=ApiKey.WRITE_TXN_MARKERS, kind="request", versions=(1, 2), flexible=1)
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@structure
class WritableTxnMarkerPartitionResult:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@structure
class WritableTxnMarkerTopicResult:
    name: str = field(STRING)
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@structure
class WritableTxnMarkerResult:
    producer_id: int = field(INT64)
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@message(api_key=ApiKey.WRITE_TXN_MARKERS, kind="response", versions=(1, 2), flexible=1)
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
