"""CreateAcls (30): add entries to the access control lists.

Version 2 is flexible, 3 knows the resource type of users.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT8, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class AclCreation:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    resource_pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@message(api_key=ApiKey.CREATE_ACLS, kind="request", versions=(1, 3), flexible=2)
class CreateAclsRequest(Message):
    creations: list[AclCreation] = array(AclCreation)


@structure
class AclCreationResult:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


@message(api_key=ApiKey.CREATE_ACLS, kind="response", versions=(1, 3), flexible=2)
class CreateAclsResponse(Message):
    throttle_time_ms: int = field(INT32)
    results: list[AclCreationResult] = array(AclCreationResult)
