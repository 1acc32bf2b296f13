"""ListGroups (16), versions 0-5: every group of this coordinator, by state (4) and type (5) if asked for."""

from __future__ import annotations

from itertools import chain

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import KafkaError
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


@serves(ListGroupsRequest)
async def handle_list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """Gather the groups of all shards."""
    try:
        shards = context.broker.groups.shards()
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
    found = await map_in_turns(
        lambda shard: shard.list_groups(request.states_filter, request.types_filter), shards
    )
    return ListGroupsResponse(groups=list(chain.from_iterable(found)))
