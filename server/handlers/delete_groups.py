"""DeleteGroups (42), versions 0-2: remove groups without members, and their offsets."""

from __future__ import annotations

from ottla.group_coordinator.share.state import ShareGroup
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


@serves(DeleteGroupsRequest)
async def handle_delete_groups(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete one group after the other."""
    results: list[DeletableGroupResult] = []
    for group_id in dict.fromkeys(request.groups_names):
        one = DeleteGroupsRequest(groups_names=[group_id])
        try:
            await _forget_share_state(context, group_id)
            response: DeleteGroupsResponse = await context.broker.groups.ask(context, group_id, one)
        except KafkaError as error:
            results.append(DeletableGroupResult(group_id, error.code))
        else:
            results += response.results
    return DeleteGroupsResponse(results=results)


async def _forget_share_state(context: RequestContext, group_id: str) -> None:
    """A share group that may be deleted has states of its partitions elsewhere, which go first."""
    group = context.broker.groups.shard_of(group_id).groups.get(group_id) if group_id else None
    if isinstance(group, ShareGroup) and group.is_empty:
        await context.broker.share.forget(group_id, group.state_metadata.all_partitions)
