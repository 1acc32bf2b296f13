"""AddOffsetsToTxn (25): the transaction will commit offsets of a group.

Version 2 may answer PRODUCER_FENCED, 3 is flexible, 4 may answer TRANSACTION_ABORTABLE. Producers of transactions V2
(KIP-890) do not send it: their TxnOffsetCommit says the same.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, field, message


@message(api_key=ApiKey.ADD_OFFSETS_TO_TXN, kind="request", versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    group_id: str = field(STRING)


@message(api_key=ApiKey.ADD_OFFSETS_TO_TXN, kind="response", versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
