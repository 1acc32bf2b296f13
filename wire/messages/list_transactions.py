"""ListTransactions (66): the transactional ids that a broker coordinates (KIP-664).

Version 1 can leave out transactions that have not run for long (KIP-994), 2 picks ids by a pattern (KIP-1152).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.LIST_TRANSACTIONS, kind="request", versions=(0, 2), flexible=0)
class ListTransactionsRequest(Message):
    state_filters: list[str] = array(STRING)
    producer_id_filters: list[int] = array(INT64)
    duration_filter: int = field(INT64, "1+", default=-1)
    transactional_id_pattern: str | None = field(STRING, "2+", nullable="2+", default=None)


@structure
class TransactionState:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    transaction_state: str = field(STRING)


@message(api_key=ApiKey.LIST_TRANSACTIONS, kind="response", versions=(0, 2), flexible=0)
class ListTransactionsResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    unknown_state_filters: list[str] = array(STRING)
    transaction_states: list[TransactionState] = array(TransactionState)
