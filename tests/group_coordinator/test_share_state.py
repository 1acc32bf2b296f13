"""The records of `__share_group_state` against Kafka's definitions and bytes, and the states folded from them."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat_tests.kafka.definitions import definitions, differences
from compat_tests.kafka.message_bridge import MessageBridge
from compat_tests.kafka.message_json import message_json
from ottla.group_coordinator.records import UnknownRecordType
from ottla.group_coordinator.share_partition.partition import StateBatch
from ottla.group_coordinator.share_state.combine import combine
from ottla.group_coordinator.share_state.records import (
    SHARE_RECORD_TYPES,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateValue,
    decode_share_record,
    encode_share_record,
)
from ottla.group_coordinator.share_state.shard import SharePartitionKey, ShareStateShard, StateWrite
from ottla.group_coordinator.topics import Topic
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.schema import decode, encode
from tests.group_coordinator.driver import FakeTopics
from tests.wire.strategies import instances

CLASSES: list[Any] = [cls for pair in SHARE_RECORD_TYPES.values() for cls in pair]
KEY = SharePartitionKey("g", b"t" * 16, 1)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_fields_are_kafkas(cls: Any) -> None:
    """Names, types, versions, tags and defaults are those of Kafka's definition."""
    assert differences(cls, definitions("kafka-share-coordinator")[cls.__name__]) == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_bytes_are_kafkas(cls: Any, kafka_messages: MessageBridge) -> None:
    """Kafka writes the same bytes for the same values, and we read the same values from them."""
    definition = definitions("kafka-share-coordinator")[cls.__name__]

    @settings(max_examples=8)
    @given(instances(cls, 0))
    def check(record: Any) -> None:
        java_class = f"org.apache.kafka.coordinator.share.generated.{cls.__name__}"
        theirs = kafka_messages.write(java_class, 0, message_json(record, 0, definition))
        assert encode(record, 0) == theirs
        assert decode(cls, 0, theirs) == record

    check()


def test_frame_and_broken_records() -> None:
    """Key and value begin with type and version; what is none of ours is told apart."""
    record = ShareStateRecord(ShareSnapshotKey(*KEY), ShareSnapshotValue(state_epoch=3))
    key, value = encode_share_record(record)
    assert (key[:2], (value or b"")[:2]) == (b"\0\0", b"\0\0")
    assert decode_share_record(key, value) == record
    assert decode_share_record(key, None).value is None
    with pytest.raises(UnknownRecordType):
        decode_share_record(b"\0\x09", None)
    with pytest.raises(MalformedMessage):
        decode_share_record(b"\0", None)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 6), st.sampled_from([0, 2, 4]), st.integers(1, 3)),
        max_size=12,
    ),
    st.integers(-1, 20),
)
def test_combined_batches_are_what_was_said_last(
    said: list[tuple[int, int, int, int]], start_offset: int
) -> None:
    """Each offset has the state it got last; batches are in order, apart, and as few as can be."""
    batches: tuple[StateBatch, ...] = ()
    expected: dict[int, tuple[int, int]] = {}
    for first, more, state, count in said:
        batches = combine(batches, [StateBatch(first, first + more, state, count)], start_offset)
        expected.update(dict.fromkeys(range(first, first + more + 1), (state, count)))
    seen = {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert seen == {offset: value for offset, value in expected.items() if offset >= start_offset}
    for one, other in pairwise(batches):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or one[2:] != other[2:]


class States:
    """A shard with a log."""

    def __init__(self) -> None:
        self.topics = FakeTopics(Topic("t", b"t" * 16, 4))
        self.shard = ShareStateShard(self.topics)
        self.log: list[ShareStateRecord] = []

    def append(self, record: ShareStateRecord | None) -> None:
        assert record is not None
        self.shard.apply(record, len(self.log))
        self.log.append(record)

    def replayed(self) -> ShareStateShard:
        shard = ShareStateShard(self.topics)
        for offset, record in enumerate(self.log):
            shard.apply(decode_share_record(*encode_share_record(record)), offset)
        return shard


def test_life_of_a_state() -> None:
    """Initialised, updated, snapshot after enough updates, replayed, deleted."""
    states = States()
    with pytest.raises(KafkaError) as refused:
        states.shard.read(KEY, 0)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    states.append(states.shard.initialize(KEY, 2, -1, 1000))
    state, update = states.shard.read(KEY, 5)
    assert (state.start_offset, state.state_epoch, state.delivery_complete_count) == (-1, 2, -1)
    states.append(update)
    for number in range(4):
        write = StateWrite(2, 5, 0, number + 1, [StateBatch(number, number, 2, 1)])
        states.append(states.shard.write(KEY, write, 2000, updates_per_snapshot=3))
    assert [type(record.value) for record in states.log[-2:]] == [ShareSnapshotValue, ShareUpdateValue]
    state = states.shard.states[KEY]
    assert (state.batches, state.leader_epoch, state.snapshot_epoch) == ((StateBatch(0, 3, 2, 1),), 5, 1)
    assert states.replayed().states == states.shard.states
    assert states.shard.needed_from(99) == 4
    for leader_epoch, state_epoch, code in (
        (4, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (5, 1, ErrorCode.FENCED_STATE_EPOCH),
    ):
        with pytest.raises(KafkaError) as refused:
            states.shard.write(KEY, StateWrite(state_epoch, leader_epoch, 0, 0, []), 0, 3)
        assert refused.value.code == code
    with pytest.raises(KafkaError) as refused:
        states.shard.initialize(KEY, 1, 0, 0)
    assert refused.value.code == ErrorCode.FENCED_STATE_EPOCH
    states.append(states.shard.delete(KEY))
    assert states.shard.states == {}
    assert states.shard.delete(KEY) is None
    assert states.shard.needed_from(99) == 99


def test_states_go_with_their_topics_and_get_cold() -> None:
    """A topic that is deleted takes its states along; one that rests is written again, once."""
    states = States()
    states.append(states.shard.initialize(KEY, 0, 7, 1000))
    assert states.shard.cold_snapshots(1999, 1000) == []
    (cold,) = states.shard.cold_snapshots(2000, 1000)
    states.append(cold)
    assert states.shard.cold_snapshots(9000, 1000) == []
    assert states.shard.states[KEY].start_offset == 7
    states.topics.topics.clear()
    (gone,) = states.shard.forget_deleted_topics()
    states.append(gone)
    assert states.shard.states == {}
    with pytest.raises(KafkaError) as refused:
        states.shard.summary(KEY)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
