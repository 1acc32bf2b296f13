"""DescribeGroups (15), versions 0-6: state and members of classic groups.

3 can tell the operations that are allowed. 6 has GROUP_ID_NOT_FOUND for what earlier versions call a dead group.
"""

from __future__ import annotations

from functools import partial

from ottla.server.authorized_operations import ALL_GROUP_OPERATIONS
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


@serves(DescribeGroupsRequest)
async def handle_describe_groups(
    context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe every group."""
    described = await map_in_turns(partial(_describe, context), request.groups)
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _describe(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        shard = context.broker.groups.shard_of(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    return shard.describe_classic_group(group_id, context.api_version)
