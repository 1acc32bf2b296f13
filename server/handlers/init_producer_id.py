"""InitProducerId (22), versions 0-5: give a producer its id and epoch.

Without a transactional id the answer is always a fresh id with epoch 0, whatever id the producer had before
(KIP-360). Ids come from blocks that the controller hands out and records, so none is given twice. With one, the
coordinator fences whoever used it before and aborts what that producer left open; the client asks again until that is
done.

- 3 a producer may bring its id and epoch to go on after an error (KIP-360).
- 4 a fenced producer is told PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.coordinated import TRANSACTIONS
from ottla.server.late_parts import import_late
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_PRODUCER_FENCED_SINCE = 4


def _refusal(code: ErrorCode, version: int) -> InitProducerIdResponse:
    if code is ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_SINCE:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


@serves(InitProducerIdRequest)
async def handle_init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Allocate a producer id, or make the producer the only one of its transactional id."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refusal(ErrorCode.INVALID_REQUEST, context.api_version)
    if request.transactional_id is None:
        producer_id = await context.broker.producer_ids.next()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    await import_late(TRANSACTIONS)
    try:
        answer = await context.broker.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            request.producer_id,
            request.producer_epoch,
        )
    except KafkaError as error:
        return _refusal(error.code, context.api_version)
    if answer.error is not ErrorCode.NONE:
        return _refusal(answer.error, context.api_version)
    return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
