"""CreateAcls (30), versions 1-3: add entries to the access control lists.

There is no authorizer, so each is answered as by a Kafka without one: SECURITY_DISABLED. An entry with an element of
type 0 (unknown) is no request at all to Kafka, and ends the connection.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.dispatch import CloseConnection
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def _is_unknown(entry: AclCreation) -> bool:
    kinds = (entry.resource_type, entry.resource_pattern_type, entry.operation, entry.permission_type)
    return 0 in kinds


@serves(CreateAclsRequest)
def handle_create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Say that there is no authorizer."""
    if any(_is_unknown(entry) for entry in request.creations):
        raise CloseConnection("CreateAcls with an element of unknown type")
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=[refused] * len(request.creations))
