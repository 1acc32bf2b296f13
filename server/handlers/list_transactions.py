"""ListTransactions (66), versions 0-2: the transactional ids of this broker (KIP-664).

- 1 leaves out what has not been open for longer than a duration (KIP-994). As in Kafka, an id without an open
  transaction counts from its last start, or from 1970 if it never had one.
- 2 takes a regular expression for whole ids (KIP-1152). It is matched by RE2, which cannot be made to run for
  ever, so that what only Java knows (look-ahead, back references) is INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.server.context import RequestContext
from ottla.server.coordinated import REGULAR_EXPRESSIONS
from ottla.server.late_parts import import_late
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.txn_coordinator.state import STATES_BY_LABEL
from ottla.txn_coordinator.transaction import Transaction
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda transactional_id: True
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION) from error
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None


def _selection(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    states = {STATES_BY_LABEL[name] for name in request.state_filters if name in STATES_BY_LABEL}
    producer_ids = set(request.producer_id_filters)
    matches = _matcher(request.transactional_id_pattern)

    def is_wanted(transaction: Transaction) -> bool:
        if producer_ids and transaction.producer_id not in producer_ids:
            return False
        if request.state_filters and transaction.state not in states:
            return False
        if request.duration_filter >= 0 and now_ms - transaction.start_ms <= request.duration_filter:
            return False
        return matches(transaction.transactional_id)

    return is_wanted


@serves(ListTransactionsRequest)
async def handle_list_transactions(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List the ids that pass all filters, in turns."""
    if request.transactional_id_pattern:
        await import_late(REGULAR_EXPRESSIONS)
    found: list[Transaction] = []
    try:
        is_wanted = _selection(request, context.broker.now_ms())

        def add_if_wanted(each: Transaction) -> None:
            if is_wanted(each):
                found.append(each)

        await map_in_turns(add_if_wanted, context.broker.transactions.transactions())
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATES_BY_LABEL],
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in found
        ],
    )
