"""DeleteShareGroupState (86), version 0: forget share partitions (KIP-932)."""

from __future__ import annotations

from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.share.state_requests import answer_each
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)


@serves(DeleteShareGroupStateRequest)
async def handle_delete_share_group_state(
    context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse:
    """Delete every partition's state."""
    share = context.broker.share

    async def delete(key: SharePartitionKey, _: PartitionData) -> PartitionResult:
        await share.states.delete(key)
        share.partitions.forget(lambda each: each == key)
        return PartitionResult()

    answers = await answer_each(request.group_id, request.topics, delete, PartitionResult)
    return DeleteShareGroupStateResponse(results=[DeleteStateResult(*each) for each in answers])
