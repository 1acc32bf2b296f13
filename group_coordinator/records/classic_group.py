"""Records of classic groups in `__consumer_offsets`: a group with all its members is one record."""

from __future__ import annotations

from ottla.wire.schema import BYTES, INT32, INT64, STRING, Message, array, field, record, structure


@record(api_key=2, versions=(0, 0))
class GroupMetadataKey(Message):
    group: str = field(STRING, "0")


@structure
class MemberMetadata:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None, ignorable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout: int = field(INT32, "1+", default=-1, ignorable=True)
    session_timeout: int = field(INT32)
    subscription: bytes = field(BYTES)
    assignment: bytes = field(BYTES)


@record(api_key=2, versions=(0, 4), flexible=4)
class GroupMetadataValue(Message):
    protocol_type: str = field(STRING)
    generation: int = field(INT32)
    protocol: str | None = field(STRING, nullable="0+")
    leader: str | None = field(STRING, nullable="0+")
    current_state_timestamp: int = field(INT64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)
