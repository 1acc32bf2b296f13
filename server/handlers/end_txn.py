"""EndTxn (26), versions 0-5: commit or abort a transaction.

- 2 a fenced producer is told PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH.
- 5 is that of transactions V2 (KIP-890): the answer has the producer id and epoch to go on with, and an abort is taken
  even where no transaction is open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ottla.server.at_once import run_at_once
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.txn_coordinator.decision import Answer
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_PRODUCER_FENCED_SINCE = 2
_V2_SINCE = 5


@serves(EndTxnRequest)
def handle_end_txn(context: RequestContext, request: EndTxnRequest) -> Any:
    """End the transaction, at once where that takes no waiting."""
    transactions = context.broker.transactions
    if transactions.ends_at_once(request.transactional_id):
        return run_at_once(_end(context, request, transactions.carry_out_end))
    return _end(context, request, transactions.end)


async def _end(
    context: RequestContext, request: EndTxnRequest, end: Callable[..., Awaitable[Answer]]
) -> EndTxnResponse:
    try:
        answer = await end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            committed=request.committed,
            client_version=2 if context.api_version >= _V2_SINCE else 0,
        )
    except KafkaError as error:
        answer = Answer(error.code)
    code = answer.error
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < _PRODUCER_FENCED_SINCE:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(
        error_code=code, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
    )
