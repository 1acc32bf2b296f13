"""DescribeAcls (29): the access control lists that a filter finds.

Version 2 is flexible, 3 knows the resource type of users.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT8, INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.DESCRIBE_ACLS, kind="request", versions=(1, 3), flexible=2)
class DescribeAclsRequest(Message):
    resource_type_filter: int = field(INT8)
    resource_name_filter: str | None = field(STRING, nullable="0+")
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, nullable="0+")
    host_filter: str | None = field(STRING, nullable="0+")
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@structure
class AclDescription:
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@structure
class DescribeAclsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8, "1+", default=3)
    acls: list[AclDescription] = array(AclDescription)


@message(api_key=ApiKey.DESCRIBE_ACLS, kind="response", versions=(1, 3), flexible=2)
class DescribeAclsResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
