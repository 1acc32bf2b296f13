"""The states of the share partitions of one partition of `__share_group_state`.

Requests give records; `apply` is the only way in which a state changes, at start-up and in live work alike. After so
many updates a snapshot is written, so that what is in front of the oldest needed snapshot can be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.group_coordinator.share_partition.partition import StateBatch
from ottla.group_coordinator.share_state import records
from ottla.group_coordinator.share_state.combine import combine
from ottla.group_coordinator.share_state.records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateKey,
    ShareUpdateValue,
)
from ottla.group_coordinator.topics import Topics
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

UNINITIALIZED: Final = -1
"""The start offset of a state before anybody has read the partition, and of an update that does not move it."""


class SharePartitionKey(NamedTuple):
    """A partition as a group shares it."""

    group_id: str
    topic_id: Uuid
    partition: int


@dataclass(frozen=True, slots=True)
class ShareState:
    """What is kept of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    create_timestamp: int
    write_timestamp: int
    snapshot_log_offset: int
    """Where the last snapshot is in the log; what is in front of it is not needed for this state."""
    update_count: int = 0
    """Updates since the last snapshot."""


class StateWrite(NamedTuple):
    """What changed in a share partition."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class ShareStateShard:
    """States by their keys."""

    def __init__(self, topics: Topics) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self._topics = topics

    # What the log holds ------------------------------------------------------------------------------------

    def apply(self, record: ShareStateRecord, offset: int) -> None:
        """Take in the record at this offset of the log."""
        key = SharePartitionKey(record.key.group_id, record.key.topic_id, record.key.partition)
        value = record.value
        if value is None:
            self.states.pop(key, None)
        elif isinstance(value, ShareSnapshotValue):
            self.states[key] = ShareState(
                value.snapshot_epoch,
                value.state_epoch,
                value.leader_epoch,
                value.start_offset,
                value.delivery_complete_count,
                _from_records(value.state_batches),
                value.create_timestamp,
                value.write_timestamp,
                offset,
            )
        else:
            self._apply_update(key, value, offset)

    def _apply_update(self, key: SharePartitionKey, value: ShareUpdateValue, offset: int) -> None:
        state = self.states.get(key)
        if state is None:
            state = ShareState(value.snapshot_epoch, 0, value.leader_epoch, -1, -1, (), 0, 0, offset)
        start = state.start_offset if value.start_offset == UNINITIALIZED else value.start_offset
        self.states[key] = ShareState(
            state.snapshot_epoch,
            state.state_epoch,
            state.leader_epoch if value.leader_epoch == -1 else value.leader_epoch,
            start,
            value.delivery_complete_count,
            combine(state.batches, _from_records(value.state_batches), start),
            state.create_timestamp,
            state.write_timestamp,
            state.snapshot_log_offset,
            state.update_count + 1,
        )

    # Requests ----------------------------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> ShareStateRecord:
        """A first state, or a new one from another start offset. KafkaError when it is refused."""
        self._check_key(key)
        state = self.states.get(key)
        if state is not None and state_epoch != -1 and state.state_epoch > state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_exists(key)
        return _snapshot(
            key,
            ShareSnapshotValue(
                snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
                state_epoch=state_epoch,
                leader_epoch=0,
                start_offset=start_offset,
                delivery_complete_count=-1 if start_offset == UNINITIALIZED else 0,
                create_timestamp=now_ms,
                write_timestamp=now_ms,
            ),
        )

    def read(self, key: SharePartitionKey, leader_epoch: int) -> tuple[ShareState, ShareStateRecord | None]:
        """The state, and a record when it has a new leader. KafkaError when it is refused."""
        state = self._find(key, leader_epoch, "Read")
        self._check_exists(key)
        if leader_epoch in (-1, state.leader_epoch):
            return state, None
        update = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        return state, ShareStateRecord(ShareUpdateKey(*key), update)

    def write(
        self, key: SharePartitionKey, write: StateWrite, now_ms: int, updates_per_snapshot: int
    ) -> ShareStateRecord:
        """An update, or a snapshot when there were enough of them. KafkaError when it is refused."""
        state = self._find(key, write.leader_epoch, "Write")
        if write.state_epoch != -1 and state.state_epoch > write.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_exists(key)
        if state.update_count < updates_per_snapshot:
            update = ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=write.start_offset,
                delivery_complete_count=write.delivery_complete_count,
                state_batches=_to_records(combine((), write.batches, write.start_offset)),
            )
            return ShareStateRecord(ShareUpdateKey(*key), update)
        start = state.start_offset if write.start_offset == UNINITIALIZED else write.start_offset
        batches = combine(state.batches, write.batches, start)
        return _snapshot(
            key,
            ShareSnapshotValue(
                state.snapshot_epoch + 1,
                state.state_epoch,
                state.leader_epoch,
                start,
                write.delivery_complete_count,
                now_ms,
                now_ms,
                _to_records(batches),
            ),
        )

    def delete(self, key: SharePartitionKey) -> ShareStateRecord | None:
        """Forget a state; there may be none."""
        self._check_key(key)
        self._check_exists(key)
        return ShareStateRecord(ShareSnapshotKey(*key), None) if key in self.states else None

    def summary(self, key: SharePartitionKey) -> ShareState | None:
        """The state without a look at epochs. KafkaError when there is no such partition."""
        self._check_key(key)
        self._check_exists(key)
        return self.states.get(key)

    # Chores ------------------------------------------------------------------------------------------------

    def forget_deleted_topics(self) -> list[ShareStateRecord]:
        """Records that remove the states of topics that are no more."""
        return [
            ShareStateRecord(ShareSnapshotKey(*key), None)
            for key in self.states
            if self._topics.by_id(key.topic_id) is None
        ]

    def cold_snapshots(self, now_ms: int, cold_ms: int) -> list[ShareStateRecord]:
        """Snapshots of states that have not changed for long, so that older records are not needed any more."""
        return [
            _snapshot(
                key,
                ShareSnapshotValue(
                    state.snapshot_epoch + 1,
                    state.state_epoch,
                    state.leader_epoch,
                    state.start_offset,
                    state.delivery_complete_count,
                    state.create_timestamp,
                    now_ms,
                    _to_records(state.batches),
                ),
            )
            for key, state in self.states.items()
            if now_ms - state.write_timestamp >= cold_ms and state.create_timestamp == state.write_timestamp
        ]

    def needed_from(self, end_offset: int) -> int:
        """The first offset of the log that is still needed."""
        return min((state.snapshot_log_offset for state in self.states.values()), default=end_offset)

    # Checks ------------------------------------------------------------------------------------------------

    def _find(self, key: SharePartitionKey, leader_epoch: int, verb: str) -> ShareState:
        self._check_key(key)
        state = self.states.get(key)
        if state is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{verb} operation on uninitialized share partition not allowed."
            )
        if leader_epoch != -1 and state.leader_epoch > leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        return state

    def _check_key(self, key: SharePartitionKey) -> None:
        if key.partition < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")

    def _check_exists(self, key: SharePartitionKey) -> None:
        topic = self._topics.by_id(key.topic_id)
        if topic is None or topic.partition_count <= key.partition:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _snapshot(key: SharePartitionKey, value: ShareSnapshotValue) -> ShareStateRecord:
    return ShareStateRecord(ShareSnapshotKey(*key), value)


def _from_records(batches: Iterable[records.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    )


def _to_records(batches: Iterable[StateBatch]) -> list[records.StateBatch]:
    return [records.StateBatch(*each) for each in batches]
