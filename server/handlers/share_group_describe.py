"""ShareGroupDescribe (77), version 1: state, epochs and members of share groups (KIP-932)."""

from __future__ import annotations

from functools import partial

from ottla.server.authorized_operations import ALL_GROUP_OPERATIONS
from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


@serves(ShareGroupDescribeRequest)
async def handle_share_group_describe(
    context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    """Describe every group."""
    described = await map_in_turns(partial(_describe, context), request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return ShareGroupDescribeResponse(groups=described)


def _describe(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        check_share_protocol(context.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return context.broker.groups.shard_of(group_id).describe_share_group(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.detail)
