"""ConsumerGroupDescribe (69), versions 0-1: state, epochs and members of consumer groups (KIP-848).

1 tells which protocol each member speaks.
"""

from __future__ import annotations

from functools import partial

from ottla.server.authorized_operations import ALL_GROUP_OPERATIONS
from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_consumer_protocol
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


@serves(ConsumerGroupDescribeRequest)
async def handle_consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe every group."""
    described = await map_in_turns(partial(_describe, context), request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=described)


def _describe(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        check_consumer_protocol(context.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return context.broker.groups.shard_of(group_id).describe_consumer_group(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.detail)
