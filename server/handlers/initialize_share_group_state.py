"""InitializeShareGroupState (83), version 0: give share partitions a first state (KIP-932)."""

from __future__ import annotations

from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.share.state_requests import answer_each
from ottla.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)


@serves(InitializeShareGroupStateRequest)
async def handle_initialize_share_group_state(
    context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    """Initialise every partition."""
    share = context.broker.share

    async def initialize(key: SharePartitionKey, wanted: PartitionData) -> PartitionResult:
        await share.states.initialize(key, wanted.state_epoch, wanted.start_offset)
        share.partitions.forget(lambda each: each == key)
        return PartitionResult()

    answers = await answer_each(request.group_id, request.topics, initialize, PartitionResult)
    return InitializeShareGroupStateResponse(results=[InitializeStateResult(*each) for each in answers])
