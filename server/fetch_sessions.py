"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then sends and gets only changes.

Pure bookkeeping. A session keeps its partitions in an ordered dict; one that was just given data moves to the
end, so that a small max_bytes serves all of them in turn. The cache holds a bounded number of sessions, and of
partitions in all of them. A full cache makes room by dropping a session unused for the eviction time, or else a
smaller one that has had that time.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
SESSIONLESS_ID = 0
_MAX_INT32 = 2**31 - 1

# Of all sessions, some 300 bytes each. Kafka bounds sessions only, each of which may name as many as fit in a frame.
MAX_CACHED_PARTITIONS = 500_000

TopicKey = str | Uuid
PartitionKey = tuple[TopicKey, int]


class FetchedPartition:
    """What a client asked of one partition, and what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: TopicKey,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    @property
    def key(self) -> PartitionKey:
        return (self.topic, self.partition)

    def take_request(self, other: "FetchedPartition") -> None:
        """A later request names this partition again, with a new position."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch

    def has_news(
        self, error_code: int, has_records: bool, high_watermark: int, log_start_offset: int
    ) -> bool:
        """Whether an incremental response must name this partition; remembers what it says."""
        news = (
            has_records
            or error_code != ErrorCode.NONE
            or high_watermark != self.sent_high_watermark
            or log_start_offset != self.sent_log_start_offset
        )
        # After an error the partition is named again once it is well, whatever its watermark.
        self.sent_high_watermark = high_watermark if error_code == ErrorCode.NONE else -1
        self.sent_log_start_offset = log_start_offset
        return news


@dataclass(slots=True)
class FetchSession:
    """One client's session."""

    session_id: int
    uses_topic_ids: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    partitions: dict[PartitionKey, FetchedPartition] = field(default_factory=dict)

    def move_to_end(self, key: PartitionKey) -> None:
        """Let the other partitions go first next time."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition

    def update(self, named: Iterable[FetchedPartition], forgotten: Iterable[PartitionKey]) -> None:
        """Add or move the named partitions and drop the forgotten ones."""
        for partition in named:
            known = self.partitions.get(partition.key)
            if known is None:
                self.partitions[partition.key] = partition
            else:
                known.take_request(partition)
        for key in forgotten:
            self.partitions.pop(key, None)


@dataclass(slots=True)
class FetchPlan:
    """What one Fetch request reads, and how its answer is to be shaped."""

    partitions: list[FetchedPartition]
    session: FetchSession | None = None
    incremental: bool = False

    @property
    def session_id(self) -> int:
        return SESSIONLESS_ID if self.session is None else self.session.session_id


class FetchSessionCache:
    """All sessions of the broker, least recently used first."""

    def __init__(self, max_sessions: int, eviction_ms: int, new_id: Callable[[], int]) -> None:
        self._max_sessions = max_sessions
        self._eviction_ms = eviction_ms
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partitions = 0  # of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(
        self,
        session_id: int,
        session_epoch: int,
        named: list[FetchedPartition],
        forgotten: list[PartitionKey],
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchPlan:
        """Decide what this request means. Raises KafkaError when its session is not as it believes."""
        if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._drop(session_id)
            if session_epoch == FINAL_EPOCH:
                return FetchPlan(named)
            return FetchPlan(named, self._create(named, uses_topic_ids, now_ms))
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._partitions -= len(session.partitions)
        session.update(named, forgotten)
        self._partitions += len(session.partitions)
        if not session.partitions:
            self._drop(session_id)
            return FetchPlan([])
        if self._partitions > MAX_CACHED_PARTITIONS:
            self._drop(session_id)
            return FetchPlan(list(session.partitions.values()))
        self.go_on(session, now_ms)
        return FetchPlan(list(session.partitions.values()), session, incremental=True)

    def of_one_partition(
        self, session_id: int, session_epoch: int, uses_topic_ids: bool
    ) -> tuple[FetchSession, FetchedPartition] | None:
        """The session that a request goes on with and its partition, if it has one only. Nothing is changed: `go_on`
        does that."""
        session = self._sessions.get(session_id)
        if (
            session is None
            or session.epoch != session_epoch
            or session.uses_topic_ids != uses_topic_ids
            or len(session.partitions) != 1
        ):
            return None
        (partition,) = session.partitions.values()
        return session, partition

    def go_on(self, session: FetchSession, now_ms: int) -> None:
        """The session has been used."""
        session.used_ms = now_ms
        session.epoch = 1 if session.epoch == _MAX_INT32 else session.epoch + 1
        self._sessions.move_to_end(session.session_id)

    def _create(
        self, named: list[FetchedPartition], uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        if not named or not self._make_room(len(named), now_ms):
            return None
        session_id = self._new_id()
        while session_id == SESSIONLESS_ID or session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_topic_ids, created_ms=now_ms, used_ms=now_ms)
        session.update(named, ())
        self._sessions[session_id] = session
        self._partitions += len(session.partitions)
        return session

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def _make_room(self, size: int, now_ms: int) -> bool:
        while self._partitions + size > MAX_CACHED_PARTITIONS or len(self._sessions) >= self._max_sessions:
            dispensable = self._dispensable(size, now_ms)
            if dispensable is None:
                return False
            self._drop(dispensable.session_id)
        return True

    def _dispensable(self, size: int, now_ms: int) -> FetchSession | None:
        if not self._sessions:
            return None
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > self._eviction_ms:
            return oldest
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if now_ms - smallest.created_ms > self._eviction_ms and len(smallest.partitions) < size:
            return smallest
        return None
