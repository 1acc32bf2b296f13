"""What ShareFetch and ShareAcknowledge check first."""

from __future__ import annotations

from ottla.server.share.sessions import SessionKey
from ottla.wire.errors import ErrorCode, KafkaError

LONGEST_MEMBER_ID = 36


def check_member(group_id: str | None, member_id: str | None) -> SessionKey:
    """The member that asks; INVALID_REQUEST when it does not say who it is."""
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id
