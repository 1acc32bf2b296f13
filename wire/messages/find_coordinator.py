"""FindCoordinator (10): the broker that coordinates a group, a transactional id or a share group.

Version 1 has the type of the key, 3 is flexible, 4 asks for many keys at once (KIP-699) and answers in a
list, 5 may answer TRANSACTION_ABORTABLE, 6 knows share groups.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT8, INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.FIND_COORDINATOR, kind="request", versions=(0, 6), flexible=3)
class FindCoordinatorRequest(Message):
    key: str = field(STRING, "0-3")
    key_type: int = field(INT8, "1+")
    coordinator_keys: list[str] = array(STRING, "4+")


@structure
class Coordinator:
    key: str = field(STRING, "4+")
    node_id: int = field(INT32, "4+")
    host: str = field(STRING, "4+")
    port: int = field(INT32, "4+")
    error_code: int = field(INT16, "4+")
    error_message: str | None = field(STRING, "4+", nullable="4+", ignorable=True)


@message(api_key=ApiKey.FIND_COORDINATOR, kind="response", versions=(0, 6), flexible=3)
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0-3")
    error_message: str | None = field(STRING, "1-3", nullable="1-3", ignorable=True)
    node_id: int = field(INT32, "0-3")
    host: str = field(STRING, "0-3")
    port: int = field(INT32, "0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")
