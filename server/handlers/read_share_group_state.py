"""ReadShareGroupState (84), version 0: the whole state of share partitions, for their leaders (KIP-932)."""

from __future__ import annotations

from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.share.state_requests import answer_each
from ottla.wire.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


@serves(ReadShareGroupStateRequest)
async def handle_read_share_group_state(
    context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse:
    """Read every partition."""
    states = context.broker.share.states

    async def read(key: SharePartitionKey, wanted: PartitionData) -> PartitionResult:
        state = states.read(key, wanted.leader_epoch)
        await states.flush_if_due()
        return PartitionResult(
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[StateBatch(*batch) for batch in state.batches],
        )

    answers = await answer_each(request.group_id, request.topics, read, PartitionResult)
    return ReadShareGroupStateResponse(results=[ReadStateResult(*each) for each in answers])
