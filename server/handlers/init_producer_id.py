"""InitProducerId (22), versions 0-5: give an idempotent producer its id.

Without a transactional id the answer is always a fresh id with epoch 0, whatever id the producer had before
(KIP-360). Ids come from blocks that the controller hands out and records, so none is given twice.
"""

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@serves(InitProducerIdRequest)
async def handle_init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Allocate the next producer id."""
    if request.transactional_id is not None:
        # An empty id is a mistake; any other needs a transaction coordinator, which this broker does not run.
        code = ErrorCode.UNSUPPORTED_VERSION if request.transactional_id else ErrorCode.INVALID_REQUEST
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    producer_id = await context.broker.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
