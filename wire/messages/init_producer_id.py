"""InitProducerId (22): a producer id and epoch, for idempotent and for transactional producers.

Version 2 is flexible, 3 lets a producer bring its id and epoch to have it bumped (KIP-360), 4 may answer
PRODUCER_FENCED, 5 TRANSACTION_ABORTABLE. Version 6, two-phase commit, is unstable in Kafka 4.3 and not
spoken.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, INT64, STRING, Message, field, message


@message(api_key=ApiKey.INIT_PRODUCER_ID, kind="request", versions=(0, 5), flexible=2)
class InitProducerIdRequest(Message):
    transactional_id: str | None = field(STRING, nullable="0+")
    transaction_timeout_ms: int = field(INT32)
    producer_id: int = field(INT64, "3+", default=-1)
    producer_epoch: int = field(INT16, "3+", default=-1)
    enable2_pc: bool = field(BOOL, "6+")
    keep_prepared_txn: bool = field(BOOL, "6+")


@message(api_key=ApiKey.INIT_PRODUCER_ID, kind="response", versions=(0, 5), flexible=2)
class InitProducerIdResponse(Message):
    throttle_time_ms: int = field(INT32, ignorable=True)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, default=-1)
    producer_epoch: int = field(INT16)
    ongoing_txn_producer_id: int = field(INT64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(INT16, "6+", default=-1)
