"""What brokers ask the share coordinator for (KIP-932, APIs 83 to 87): the same answers from both brokers."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import RawShareConsumer
from compat_tests.raw_topics import create_topic
from ottla.wire.messages import delete_share_group_state as deleting
from ottla.wire.messages import initialize_share_group_state as initializing
from ottla.wire.messages import read_share_group_state as reading
from ottla.wire.messages import read_share_group_state_summary as summing
from ottla.wire.messages import write_share_group_state as writing

UNREAD_WORDS = "Read operation on uninitialized share partition not allowed."
UNWRITTEN_WORDS = "Write operation on uninitialized share partition not allowed."
NEGATIVE_WORDS = "The partition id cannot be a negative number."
UNKNOWN, INVALID, FENCED_LEADER, FENCED_STATE = 3, 42, 74, 124


class States:
    """The requests, with the group and the topic filled in. Results come as plain values, without default messages."""

    def __init__(self, raw: RawClient, group_id: str, topic_id: bytes) -> None:
        self.raw = raw
        self.group_id = group_id
        self.topic_id = topic_id

    def read(self, partition: int = 0, leader_epoch: int = 0, **where: Any) -> Any:
        rows = [reading.PartitionData(partition, leader_epoch)]
        request = reading.ReadShareGroupStateRequest(
            self._group(where), [reading.ReadStateData(self._topic(where), rows)]
        )
        row = self._row(request, 0)
        batches = [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in row.state_batches
        ]
        return row.error_code, row.error_message, row.state_epoch, row.start_offset, batches

    def summarize(self, partition: int = 0, version: int = 1, **where: Any) -> Any:
        rows = [summing.PartitionData(partition, 0)]
        request = summing.ReadShareGroupStateSummaryRequest(
            self._group(where), [summing.ReadStateSummaryData(self._topic(where), rows)]
        )
        row = self._row(request, version)
        return (
            row.error_code,
            row.state_epoch,
            row.leader_epoch,
            row.start_offset,
            row.delivery_complete_count,
        )

    def write(self, *fields: Any, **where: Any) -> Any:
        rows = [writing.PartitionData(*fields)]
        request = writing.WriteShareGroupStateRequest(
            self._group(where), [writing.WriteStateData(self._topic(where), rows)]
        )
        return self._code(request, 1)

    def initialize(self, *fields: Any, **where: Any) -> Any:
        rows = [initializing.PartitionData(*fields)]
        request = initializing.InitializeShareGroupStateRequest(
            self._group(where), [initializing.InitializeStateData(self._topic(where), rows)]
        )
        return self._code(request, 0)

    def delete(self, partition: int = 0, **where: Any) -> Any:
        rows = [deleting.PartitionData(partition)]
        request = deleting.DeleteShareGroupStateRequest(
            self._group(where), [deleting.DeleteStateData(self._topic(where), rows)]
        )
        return self._code(request, 0)

    def _group(self, where: dict[str, Any]) -> str:
        return str(where.get("group_id", self.group_id))

    def _topic(self, where: dict[str, Any]) -> bytes:
        return bytes(where.get("topic_id", self.topic_id))

    def _code(self, request: Any, version: int) -> tuple[int, str | None]:
        row = self._row(request, version)
        return row.error_code, row.error_message

    def _row(self, request: Any, version: int) -> Any:
        (result,) = self.raw.send(request, version).results
        assert result.topic_id == request.topics[0].topic_id
        (row,) = result.partitions
        assert row.partition == request.topics[0].partitions[0].partition
        return row


@pytest.fixture
def states(raw: RawClient, topic_name: str) -> States:
    """A group with an assigned topic of two partitions."""
    group_id = f"share-{uuid.uuid4().hex[:8]}"
    wait_for_coordinator(raw, group_id)
    topic_id = create_topic(raw, topic_name, 2)
    RawShareConsumer(raw, group_id, "m", topic_name).join_and_wait(2)
    return States(raw, group_id, topic_id)


def test_a_state_is_written_and_read(states: States) -> None:
    """Batches are laid over each other; the summary counts; a new leader is remembered."""
    batch = writing.StateBatch
    assert states.summarize() == (0, 2, 0, -1, -1)
    assert states.read() == (0, None, 2, -1, [])
    batches = [batch(3, 5, 2, 1), batch(5, 8, 0, 2), batch(4, 4, 4, 1)]
    assert states.write(0, 9, 0, 3, 3, batches) == (0, None)
    kept = [(3, 3, 2, 1), (4, 4, 4, 1), (5, 8, 0, 2)]
    assert states.read(leader_epoch=5) == (0, None, 2, 3, kept)
    assert states.summarize() == (0, 2, 5, 3, 3)
    assert states.summarize(version=0) == (0, 2, 5, 3, -1)
    assert states.write(0, -1, -1, -1, 3, []) == (0, None)
    assert states.write(0, 9, 7, 4, 2, []) == (0, None)  # a write brings no new leader
    assert states.summarize() == (0, 2, 5, 4, 2)
    assert states.read(leader_epoch=5) == (0, None, 2, 4, kept[1:])


def test_epochs(states: States) -> None:
    """Older leaders and states are fenced; whoever initialises anew begins with a newer epoch."""
    assert states.read(leader_epoch=5)[0] == 0
    assert states.read(leader_epoch=3)[0] == FENCED_LEADER
    assert states.write(0, 9, 3, 3, 3, [])[0] == FENCED_LEADER
    assert states.write(0, 0, 5, 3, 3, [])[0] == FENCED_STATE
    assert states.initialize(0, 0, 1)[0] == FENCED_STATE
    assert states.initialize(0, 20, 1) == (0, None)
    assert states.summarize() == (0, 20, 0, 1, 0)
    assert states.initialize(0, -1, 4) == (0, None)
    assert states.summarize() == (0, -1, 0, 4, 0)


def test_deleting(states: States) -> None:
    """What is deleted is not there; deleting what is not there is fine."""
    assert states.delete() == (0, None)
    assert states.delete() == (0, None)
    assert states.read()[:2] == (INVALID, UNREAD_WORDS)
    assert states.summarize() == (0, 0, 0, -1, -1)
    assert states.initialize(0, 0, 2) == (0, None)
    assert states.read() == (0, None, 0, 2, [])


@pytest.mark.parametrize("topic_id", [None, b"x" * 16, bytes(16)], ids=["known", "unknown", "zero"])
def test_what_is_not_there(states: States, topic_id: bytes | None) -> None:
    """Partitions that do not exist, and topics that do not."""
    where: dict[str, Any] = {} if topic_id is None else {"topic_id": topic_id}
    partition = 9 if topic_id is None else 0
    assert states.read(partition, **where)[:2] == (INVALID, UNREAD_WORDS)
    assert states.write(partition, 0, 0, 3, 3, [], **where) == (INVALID, UNWRITTEN_WORDS)
    assert states.summarize(partition, **where)[0] == UNKNOWN
    assert states.initialize(partition, 0, 1, **where)[0] == UNKNOWN
    assert states.delete(partition, **where)[0] == UNKNOWN


def test_negative_partitions(states: States) -> None:
    """They are refused in the same words by all."""
    assert states.read(-1)[:2] == (INVALID, NEGATIVE_WORDS)
    assert states.summarize(-1)[0] == INVALID
    for refused in (states.write(-1, 0, 0, 3, 3, []), states.initialize(-1, 0, 1), states.delete(-1)):
        assert refused == (INVALID, NEGATIVE_WORDS)


EMPTY: list[tuple[str, Callable[[str, bytes], Any], int]] = [
    (
        "read",
        lambda group, topic: reading.ReadShareGroupStateRequest(group, [reading.ReadStateData(topic, [])]),
        0,
    ),
    (
        "write",
        lambda group, topic: writing.WriteShareGroupStateRequest(group, [writing.WriteStateData(topic, [])]),
        1,
    ),
    (
        "delete",
        lambda group, topic: deleting.DeleteShareGroupStateRequest(
            group, [deleting.DeleteStateData(topic, [])]
        ),
        0,
    ),
    (
        "summary",
        lambda group, topic: summing.ReadShareGroupStateSummaryRequest(
            group, [summing.ReadStateSummaryData(topic, [])]
        ),
        1,
    ),
]


@pytest.mark.parametrize(("make", "version"), [each[1:] for each in EMPTY], ids=[each[0] for each in EMPTY])
def test_requests_for_nothing(states: States, make: Callable[[str, bytes], Any], version: int) -> None:
    """Without a group or without partitions the whole answer is empty."""
    assert states.raw.send(make(states.group_id, states.topic_id), version).results == []
    without_topics = make(states.group_id, states.topic_id)
    without_topics.topics = []
    assert states.raw.send(without_topics, version).results == []
    without_group = reading.ReadShareGroupStateRequest(
        "", [reading.ReadStateData(states.topic_id, [reading.PartitionData(0, 0)])]
    )
    assert states.raw.send(without_group, 0).results == []
