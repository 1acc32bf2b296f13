"""ListGroups (16), versions 0-5: every group of this coordinator, by state (4) and type (5) if asked for."""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


@serves(ListGroupsRequest)
def handle_list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Gather the groups of all shards."""
    try:
        shards = context.broker.groups.shards()
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
    return ListGroupsResponse(
        groups=[
            group
            for shard in shards
            for group in shard.list_groups(request.states_filter, request.types_filter)
        ]
    )
