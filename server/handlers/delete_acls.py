"""DeleteAcls (31), versions 1-3: remove entries from the access control lists.

There is no authorizer, so each filter is answered as by a Kafka without one: SECURITY_DISABLED. A filter with an
element of type 0 (unknown) is no request at all to Kafka, and ends the connection.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.dispatch import CloseConnection
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def _is_unknown(wanted: DeleteAclsFilter) -> bool:
    kinds = (wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation)
    return 0 in (*kinds, wanted.permission_type)


@serves(DeleteAclsRequest)
def handle_delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Say that there is no authorizer."""
    if any(_is_unknown(wanted) for wanted in request.filters):
        raise CloseConnection("DeleteAcls with an element of unknown type")
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
