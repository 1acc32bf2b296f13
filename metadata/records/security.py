"""Metadata records of access: ACLs, SCRAM credentials and delegation tokens."""

from ottla.wire.schema import (
    BYTES,
    INT8,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    array,
    field,
    record,
)
from ottla.wire.uuids import Uuid


@record(api_key=18, versions=(0, 0), flexible=0)
class AccessControlEntryRecord(Message):
    id: Uuid = field(UUID)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@record(api_key=19, versions=(0, 0), flexible=0)
class RemoveAccessControlEntryRecord(Message):
    id: Uuid = field(UUID)


@record(api_key=11, versions=(0, 0), flexible=0)
class UserScramCredentialRecord(Message):
    name: str = field(STRING)
    mechanism: int = field(INT8)
    salt: bytes = field(BYTES)
    stored_key: bytes = field(BYTES)
    server_key: bytes = field(BYTES)
    iterations: int = field(INT32)


@record(api_key=22, versions=(0, 0), flexible=0)
class RemoveUserScramCredentialRecord(Message):
    name: str = field(STRING)
    mechanism: int = field(INT8)


@record(api_key=10, versions=(0, 0), flexible=0)
class DelegationTokenRecord(Message):
    owner: str = field(STRING)
    requester: str = field(STRING)
    renewers: list[str] = array(STRING)
    issue_timestamp: int = field(INT64)
    max_timestamp: int = field(INT64)
    expiration_timestamp: int = field(INT64)
    token_id: str = field(STRING)


@record(api_key=26, versions=(0, 0), flexible=0)
class RemoveDelegationTokenRecord(Message):
    token_id: str = field(STRING)
