"""DeleteGroups (42), versions 0-2: remove groups without members, and their offsets."""

from __future__ import annotations

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
            response: DeleteGroupsResponse = await context.broker.groups.ask(context, group_id, one)
        except KafkaError as error:
            results.append(DeletableGroupResult(group_id, error.code))
        else:
            results += response.results
    return DeleteGroupsResponse(results=results)
