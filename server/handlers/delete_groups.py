"""DeleteGroups (42), versions 0-2: remove groups without members, and their offsets."""

from __future__ import annotations

from types import CoroutineType
from typing import Any

from ottla.group_coordinator.share.state import ShareGroup
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import Turns
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
    async with Turns() as turns:
        for group_id in dict.fromkeys(request.groups_names):
            try:
                group = _share_group(context, group_id)
                if group is not None:
                    # The states of its partitions are elsewhere, and go first.
                    partitions = group.state_metadata.all_partitions
                    await turns.outside(context.broker.share.forget(group_id, partitions))
                answer = _delete(context, group_id)
                if isinstance(answer, CoroutineType):
                    answer = await turns.outside(answer)
                results += answer.results
            except KafkaError as error:
                results.append(DeletableGroupResult(group_id, error.code))
            await turns.rest()
    return DeleteGroupsResponse(results=results)


def _share_group(context: RequestContext, group_id: str) -> ShareGroup | None:
    """The share group of this id, if it is one that may be deleted. Raises KafkaError."""
    group = context.broker.groups.shard_of(group_id).groups.get(group_id) if group_id else None
    return group if isinstance(group, ShareGroup) and group.is_empty else None


def _delete(context: RequestContext, group_id: str) -> Any:
    """The answer of the group's shard, or a coroutine of it while its log is flushed."""

    def refuse(error: KafkaError) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id, error.code)])

    one = DeleteGroupsRequest(groups_names=[group_id])
    return context.broker.groups.answer(context, group_id, one, refuse)
