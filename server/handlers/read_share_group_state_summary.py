"""ReadShareGroupStateSummary (87), versions 0-1: start offsets and epochs of share partitions (KIP-932).

1 counts what is delivered (KIP-1226).
"""

from __future__ import annotations

from ottla.group_coordinator.share_state.shard import UNINITIALIZED, SharePartitionKey
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.share.state_requests import answer_each
from ottla.wire.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


@serves(ReadShareGroupStateSummaryRequest)
async def handle_read_share_group_state_summary(
    context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    """Sum every partition up."""
    states = context.broker.share.states

    async def read(key: SharePartitionKey, _: PartitionData) -> PartitionResult:
        state = states.summary(key)
        if state is None:
            return PartitionResult(start_offset=UNINITIALIZED)
        return PartitionResult(
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    answers = await answer_each(request.group_id, request.topics, read, PartitionResult)
    return ReadShareGroupStateSummaryResponse(results=[ReadStateSummaryResult(*each) for each in answers])
