"""DescribeAcls (29), versions 1-3: which access control lists there are.

There is no authorizer, so the answer is that of a Kafka without one: SECURITY_DISABLED. A filter with an element of
type 0 (unknown) is no request at all to Kafka, and ends the connection.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.dispatch import CloseConnection
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@serves(DescribeAclsRequest)
def handle_describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Say that there is no authorizer."""
    kinds = (request.resource_type_filter, request.pattern_type_filter, request.operation)
    if 0 in (*kinds, request.permission_type):
        raise CloseConnection("DescribeAcls with an element of unknown type")
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
