"""LeaveGroup (13), versions 0-5: members leave a classic group, or are removed by an admin.

- Below 3 it is about one member, and its error is that of the answer.
- 3 takes several, and static ones by their instance id alone.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_SEVERAL_MEMBERS_SINCE = 3


@serves(LeaveGroupRequest)
async def handle_leave_group(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Take the members out."""
    several = context.api_version >= _SEVERAL_MEMBERS_SINCE
    if not several:
        request.members = [MemberIdentity(request.member_id)]
    try:
        response: LeaveGroupResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    if several:
        return response
    (only,) = response.members
    return LeaveGroupResponse(error_code=response.error_code or only.error_code)
