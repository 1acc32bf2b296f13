"""What goes into a shard of groups and what comes out of it.

An event is a request with the number of the waiter who wants its answer, a timer that fired, or news of
topics. Effects are executed by the server in their order: records are appended to the log as one batch and
then applied, and only then do answers behind them leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.group_coordinator.records import CoordinatorRecord
from ottla.wire.schema import Message
from ottla.wire.uuids import Uuid


class TimerKey(NamedTuple):
    """`kind` names who set it, such as `classic.session`; each family has its own kinds."""

    kind: str
    group_id: str
    member_id: str = ""


class Append(NamedTuple):
    """Write these records, all or none, and apply them. Those of a transaction carry its producer."""

    records: tuple[CoordinatorRecord, ...]
    producer_id: int = -1
    producer_epoch: int = -1


class Reply(NamedTuple):
    """Answer a waiter; each waiter is answered once."""

    waiter: int
    response: Message


class SetTimer(NamedTuple):
    """Fire at this time; replaces an earlier timer with the same key."""

    key: TimerKey
    at_ms: int


class CancelTimer(NamedTuple):
    key: TimerKey


class InitializeShareState(NamedTuple):
    """Give these share partitions a state in `__share_group_state`; `ShareStateInitialized` follows."""

    group_id: str
    state_epoch: int
    partitions: Mapping[Uuid, frozenset[int]]


class ShareMemberGone(NamedTuple):
    """A member of a share group is no more: what it holds is for others."""

    group_id: str
    member_id: str
    group_is_empty: bool


Effect = Append | Reply | SetTimer | CancelTimer | InitializeShareState | ShareMemberGone


class GroupRequest(NamedTuple):
    """A request of a client. What needs only the metadata the server has already answered: names of topics by
    their ids, topics that do not exist."""

    waiter: int
    message: Message
    api_version: int
    client_id: str = ""
    client_host: str = ""


class TimerFired(NamedTuple):
    key: TimerKey


class TopicsChanged(NamedTuple):
    """Topics of these names were created, got partitions, or were deleted; the view of topics already shows
    it."""

    created_or_grown: frozenset[str]
    deleted: frozenset[str]


class OffsetsGone(NamedTuple):
    """Topics of these names were deleted: forget what was committed for them, but no more of it at once than so much.
    `TopicsChanged` follows when nothing is left."""

    deleted: frozenset[str]
    most: int


class ShareStateInitialized(NamedTuple):
    """These share partitions have a state in `__share_group_state`. An admin may make a group that way."""

    group_id: str
    partitions: Mapping[Uuid, frozenset[int]]
    creates_group: bool = False


class ShareStateRemoved(NamedTuple):
    """The share partitions of these topics have no state any more."""

    group_id: str
    topic_ids: frozenset[Uuid]


Event = GroupRequest | TimerFired | TopicsChanged | OffsetsGone | ShareStateInitialized | ShareStateRemoved
