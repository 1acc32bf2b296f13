"""AddOffsetsToTxn (25), versions 0-4: the transaction will commit offsets of a group.

The group's partition of `__consumer_offsets` joins the transaction, so that a marker in it decides about the offsets.
- 2 a fenced producer is told PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import Any

from ottla.server.at_once import run_at_once
from ottla.server.context import RequestContext
from ottla.server.internal_topics import OFFSETS_TOPIC, coordinator_partition
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_PRODUCER_FENCED_SINCE = 2
_CLIENT_VERSION = 0  # producers of transactions V2 do not send it


@serves(AddOffsetsToTxnRequest)
def handle_add_offsets_to_txn(context: RequestContext, request: AddOffsetsToTxnRequest) -> Any:
    """Add the group's partition to the transaction, at once where that takes no waiting."""
    if context.broker.transactions.writes_at_once(request.transactional_id):
        return run_at_once(_add(context, request))
    return _add(context, request)


async def _add(context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    broker = context.broker
    offsets = broker.image.topics_by_name.get(OFFSETS_TOPIC)
    if offsets is None:
        count = broker.config.get_int("offsets.topic.num.partitions")
    else:
        count = len(offsets.partitions)
    partition = (OFFSETS_TOPIC, coordinator_partition(request.group_id, count))
    errors = await broker.transactions.add_partitions(
        request.transactional_id, request.producer_id, request.producer_epoch, [partition], _CLIENT_VERSION
    )
    error = errors[partition]
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < _PRODUCER_FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)
