"""Share sessions: which partitions a member fetches, kept between its requests (KIP-932).

A session belongs to a member of a group. Epoch 0 opens it, -1 closes it, and every request in between carries the next
epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 0x7FFFFFFF

TopicPartition = tuple[Uuid, int]
SessionKey = tuple[str, str]


@dataclass(slots=True)
class ShareSession:
    """The partitions of a member; `must_answer` are those that were named since the last answer."""

    epoch: int = 1
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    must_answer: set[TopicPartition] = field(default_factory=set)

    def advance(self, epoch: int) -> None:
        """Take the request of this epoch, which must be the expected one."""
        if self.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        self.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1


class ShareSessions:
    """All sessions by group and member."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, key: SessionKey, partitions: Iterable[TopicPartition]) -> ShareSession:
        """A new session; an older one of the member is forgotten. SHARE_SESSION_LIMIT_REACHED."""
        self._sessions.pop(key, None)
        if len(self._sessions) >= self._max_sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(partitions=dict.fromkeys(partitions))
        return session

    def find(self, key: SessionKey) -> ShareSession:
        """The session of a member; SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def update(
        self,
        key: SessionKey,
        epoch: int,
        named: Iterable[TopicPartition],
        forgotten: Iterable[TopicPartition],
    ) -> ShareSession:
        """The session after a fetch of this epoch."""
        session = self.find(key)
        session.advance(epoch)
        for each in named:
            if each not in session.partitions:
                session.partitions[each] = None
                session.must_answer.add(each)
        for each in forgotten:
            session.partitions.pop(each, None)
        return session

    def close(self, key: SessionKey) -> ShareSession | None:
        """Forget a session."""
        return self._sessions.pop(key, None)
