"""WriteShareGroupState (85), versions 0-1: keep what changed in share partitions (KIP-932).

1 counts what is delivered (KIP-1226).
"""

from __future__ import annotations

from ottla.group_coordinator.share_partition.partition import StateBatch
from ottla.group_coordinator.share_state.shard import SharePartitionKey, StateWrite
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.share.state_requests import answer_each
from ottla.wire.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


@serves(WriteShareGroupStateRequest)
async def handle_write_share_group_state(
    context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse:
    """Write every partition."""
    states = context.broker.share.states

    async def write(key: SharePartitionKey, wanted: PartitionData) -> PartitionResult:
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in wanted.state_batches
        ]
        change = StateWrite(
            wanted.state_epoch,
            wanted.leader_epoch,
            wanted.start_offset,
            wanted.delivery_complete_count,
            batches,
        )
        states.write(key, change)
        await states.flush_if_due()
        return PartitionResult()

    answers = await answer_each(request.group_id, request.topics, write, PartitionResult)
    return WriteShareGroupStateResponse(results=[WriteStateResult(*each) for each in answers])
