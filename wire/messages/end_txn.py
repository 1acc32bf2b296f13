"""EndTxn (26): commit or abort the transaction.

Version 2 may answer PRODUCER_FENCED, 3 is flexible, 4 may answer TRANSACTION_ABORTABLE. Version 5 is that of
transactions V2 (KIP-890): the epoch is bumped at every end, and the answer says what id and epoch to go on with.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, INT64, STRING, Message, field, message


@message(api_key=ApiKey.END_TXN, kind="request", versions=(0, 5), flexible=3)
class EndTxnRequest(Message):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    committed: bool = field(BOOL)


@message(api_key=ApiKey.END_TXN, kind="response", versions=(0, 5), flexible=3)
class EndTxnResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, "5+", default=-1, ignorable=True)
    producer_epoch: int = field(INT16, "5+", default=-1, ignorable=True)
