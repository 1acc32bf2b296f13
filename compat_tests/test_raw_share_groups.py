"""Share groups (KIP-932) request by request: the same answers from both brokers."""

import uuid
from typing import Any

import pytest
from kafka import KafkaProducer

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import RawShareConsumer, ack_codes, acquired, configure_group
from compat_tests.raw_topics import create_topic
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."


@pytest.fixture
def group(raw: RawClient) -> str:
    """The name of a share group that is coordinated and reads from the beginning."""
    name = f"share-{uuid.uuid4().hex[:8]}"
    wait_for_coordinator(raw, name)
    configure_group(raw, name, share_auto_offset_reset="earliest", share_assignment_interval_ms="0")
    return name


@pytest.fixture
def topic(raw: RawClient, topic_name: str) -> tuple[str, bytes]:
    """A topic of two partitions: name and id."""
    return topic_name, create_topic(raw, topic_name, 2)


@pytest.fixture
def produce(bootstrap: str, topic: tuple[str, bytes]) -> Any:
    """Writes records one batch each."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)

    def write(count: int, partition: int = 0) -> None:
        for number in range(count):
            producer.send(topic[0], b"%d" % number, partition=partition).get(10)

    yield write
    producer.close()


@pytest.fixture
def member(raw: RawClient, group: str, topic: tuple[str, bytes]) -> RawShareConsumer:
    """A member that has both partitions."""
    consumer = RawShareConsumer(raw, group, "m1", topic[0])
    consumer.join_and_wait(2)
    return consumer


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"member_id": ""}, 42, None),
        ({"member_id": "m" * 37}, 42, None),
        ({"member_id": " "}, 42, "MemberId can't be empty."),
        ({"group_id": ""}, 42, "GroupId can't be empty."),
        ({"rack_id": ""}, 42, "RackId can't be empty."),
        ({"subscribed_topic_names": []}, 42, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, 42, "MemberEpoch is invalid."),
        ({"member_epoch": 5}, 69, "Share group {group} not found."),
        ({"member_epoch": -1}, 69, "Group {group} not found."),
    ],
)
def test_refused_heartbeats(
    raw: RawClient, group: str, fields: dict[str, Any], code: int, words: str | None
) -> None:
    """What is wrong with a heartbeat is said in the same words."""
    full = {"group_id": group, "member_id": "m", "subscribed_topic_names": ["t"], **fields}
    answer = raw.send(ShareGroupHeartbeatRequest(**full), 1)
    assert (answer.error_code, answer.error_message) == (code, words and words.format(group=group))


def test_join_assign_share_and_leave(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """Epochs and assignments of one member, of a third one that has to share, and after it left."""
    name = topic[0]
    first = RawShareConsumer(raw, group, "m1", name)
    answer = first.join()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m1", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert first.assigned == {}  # the state of the partitions has to be initialised
    first.join_and_wait(2)
    others = [RawShareConsumer(raw, group, f"m{number}", name) for number in (2, 3)]
    for other in others:
        other.join_and_wait(1)
    (described,) = raw.send(ShareGroupDescribeRequest(group_ids=[group]), 1).groups
    assert (described.group_state, described.assignor_name, len(described.members)) == ("Stable", "simple", 3)
    assert {
        index for each in described.members for index in each.assignment.topic_partitions[0].partitions
    } == {0, 1}
    assert [each.assignment.topic_partitions[0].topic_name for each in described.members] == [name] * 3
    fenced = first.beat(member_epoch=first.epoch + 5)
    assert fenced.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "The share group member has a greater member epoch" in fenced.error_message
    left = others[1].leave()
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert others[1].beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_share_groups_among_others(raw: RawClient, group: str, member: RawShareConsumer) -> None:
    """They are listed as such, and no other protocol gets in."""
    listed = raw.send(ListGroupsRequest(types_filter=["share"]), 5).groups
    assert [
        (each.protocol_type, each.group_state, each.group_type) for each in listed if each.group_id == group
    ] == [("share", "Stable", "share")]
    joining = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    assert raw.send(joining, 9).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    refused = raw.send(beat, 1)
    assert (refused.error_code, refused.error_message) == (69, f"Group {group} is not a consumer group.")
    (deleted,) = raw.send(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == ErrorCode.NON_EMPTY_GROUP
    (unknown,) = raw.send(ShareGroupDescribeRequest(group_ids=["no-such-group"]), 1).groups
    assert (unknown.error_code, unknown.error_message) == (69, "Group no-such-group not found.")
    assert unknown.group_state == ""


def test_fetch_and_acknowledge(member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """Records are acquired once, accepted, released and delivered again, and rejected."""
    topic_id = topic[1]
    produce(6)
    first = member.fetch(topic_id, 0, 1)
    assert first.error_code == ErrorCode.NONE
    assert first.acquisition_lock_timeout_ms == 30_000
    assert acquired(first)[0] == [(0, 5, 1)]
    assert acquired(member.fetch(topic_id, max_wait_ms=100)) == {}
    answer = member.acknowledge(topic_id, 0, (0, 1, [ACCEPT]), (2, 4, [RELEASE, REJECT, RELEASE]))
    assert ack_codes(answer) == [(0, None)]
    assert answer.acquisition_lock_timeout_ms == 30_000
    again = member.fetch(topic_id)
    assert acquired(again) == {0: [(2, 2, 2), (4, 4, 2)]}
    done = member.fetch(topic_id, 0, acks=[(2, 2, [ACCEPT]), (4, 5, [ACCEPT])], max_wait_ms=100)
    ((row,),) = [each.partitions for each in done.responses]
    assert (row.acknowledge_error_code, row.acquired_records) == (0, [])
    assert acquired(member.fetch(topic_id, max_wait_ms=100)) == {}


def test_refused_acknowledgements(member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """Nobody else's records, none twice, none that were not delivered; nothing of a refused request counts."""
    name, topic_id = topic
    produce(4)
    assert acquired(member.fetch(topic_id, 0)) == {0: [(0, 3, 1)]}
    other = RawShareConsumer(member.raw, member.group_id, "m2", name)
    other.join()
    other.fetch(topic_id, 0, max_wait_ms=0)
    assert ack_codes(other.acknowledge(topic_id, 0, (0, 1, [ACCEPT]))) == [
        (121, "Member is not the owner of batch record")
    ]
    past = "Batch record not found. The {} offset in request is past acquired records."
    assert ack_codes(member.acknowledge(topic_id, 0, (0, 9, [ACCEPT]))) == [(42, past.format("last"))]
    assert ack_codes(member.acknowledge(topic_id, 0, (7, 9, [ACCEPT]))) == [(42, past.format("first"))]
    for batch in ((3, 2, [1]), (0, 1, []), (0, 1, [1, 1, 1]), (0, 1, [5]), (0, 1, [RENEW])):
        assert ack_codes(member.acknowledge(topic_id, 0, batch)) == [(42, None)], batch
    assert ack_codes(member.acknowledge(topic_id, 0, (0, 1, [4]), version=1)) == [(42, None)]
    assert ack_codes(member.acknowledge(topic_id, 1, (0, 1, [1])))[0][0] == 3
    assert ack_codes(member.acknowledge(b"x" * 16, 0, (0, 1, [1])))[0][0] == ErrorCode.UNKNOWN_TOPIC_ID
    assert ack_codes(member.acknowledge(topic_id, 0, (0, 3, [ACCEPT]))) == [(0, None)]
    assert ack_codes(member.acknowledge(topic_id, 0, (0, 3, [ACCEPT]))) == [(0, None)]  # long done


def test_sessions(member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """Epochs are counted; a session that ends gives back what it had."""
    topic_id = topic[1]
    assert member.fetch(topic_id, share_session_epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(topic_id, share_session_epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    refused = member.fetch(topic_id, 0, acks=[(0, 0, [1])])
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    produce(3)
    assert acquired(member.fetch(topic_id, 0)) == {0: [(0, 2, 1)]}
    wrong = member.fetch(topic_id, share_session_epoch=7)
    assert (wrong.error_code, wrong.responses) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH, [])
    assert wrong.acquisition_lock_timeout_ms == 0
    nothing = member.acknowledge(topic_id, 0, (0, 0, [1]), share_session_epoch=0)
    assert nothing.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    closed = member.acknowledge(topic_id, 0, (0, 0, [ACCEPT]), share_session_epoch=-1)
    assert ack_codes(closed) == [(0, None)]
    member.session_epoch = 0
    eventually(lambda: acquired(member.fetch(topic_id, 0, share_session_epoch=0)), {0: [(1, 2, 2)]})
    assert member.fetch(topic_id, member_id="").error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch(topic_id, group_id=None).error_code == ErrorCode.INVALID_REQUEST


def test_connection_lost(
    bootstrap: str, member: RawShareConsumer, topic: tuple[str, bytes], produce: Any
) -> None:
    """Whoever loses its connection loses its records."""
    topic_id = topic[1]
    member.fetch(topic_id, 0, max_wait_ms=0)
    produce(2)
    with RawClient.to(bootstrap) as own:
        other = RawShareConsumer(own, member.group_id, "m2", topic[0])
        other.join()
        assert acquired(other.fetch(topic_id, 0)) == {0: [(0, 1, 1)]}

    eventually(lambda: acquired(member.fetch(topic_id, max_wait_ms=100)), {0: [(0, 1, 2)]})


def test_limits(member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """A number of records that counts, and one that is rounded to batches; runs of a batch size."""
    topic_id = topic[1]
    produce(10)
    limited = member.fetch(topic_id, 0, max_records=3, share_acquire_mode=1)
    assert acquired(limited) == {0: [(0, 2, 1)]}
    rounded = member.fetch(topic_id, max_records=4, batch_size=2)
    assert acquired(rounded) == {0: [(3, 4, 1), (5, 6, 1)]}
    member.acknowledge(topic_id, 0, (0, 6, [RELEASE]))
    assert acquired(member.fetch(topic_id, max_records=1, share_acquire_mode=1)) == {0: [(0, 0, 2)]}


def test_renew(member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """A lock is renewed on request, and no records are fetched with that."""
    topic_id = topic[1]
    produce(2)
    member.fetch(topic_id, 0)
    assert ack_codes(member.acknowledge(topic_id, 0, (0, 1, [RENEW]), is_renew_ack=True)) == [(0, None)]
    refused = member.fetch(topic_id, 0, acks=[(0, 1, [RENEW])], is_renew_ack=True)
    assert (refused.error_code, refused.error_message) == (42, None)
    zero = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    renewed = member.fetch(topic_id, 0, acks=[(0, 1, [RENEW])], is_renew_ack=True, **zero)
    assert acquired(renewed) == {0: []}
    configure_group(member.raw, member.group_id, share_renew_acknowledge_enable="false")
    eventually(
        lambda: ack_codes(member.acknowledge(topic_id, 0, (0, 1, [RENEW]), is_renew_ack=True)),
        [(121, "Renewing acquisition locks is not enabled for the group.")],
    )


def test_delivery_count_limit(member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """A record that is released again and again is given up; before that it is delivered in ever smaller parts."""
    topic_id = topic[1]
    configure_group(member.raw, member.group_id, share_delivery_count_limit="4")
    produce(4)
    seen = [acquired(member.fetch(topic_id, 0))[0]]
    for _ in range(30):
        for first, last, _ in seen[-1]:
            member.acknowledge(topic_id, 0, (first, last, [RELEASE]))
        answer = acquired(member.fetch(topic_id, max_wait_ms=100))
        if not answer.get(0):
            break
        seen.append(answer[0])
    deliveries = dict.fromkeys(range(4), 0)
    for rows in seen:
        for first, last, count in rows:
            for offset in range(first, last + 1):
                deliveries[offset] += 1
                assert count == deliveries[offset]
    assert deliveries == dict.fromkeys(range(4), 4)
    assert seen[:3] == [[(0, 3, 1)], [(0, 3, 2)], [(0, 1, 3)]]
    assert [last - first for rows in seen for first, last, count in rows if count == 4] == [0, 0, 0, 0]


def offsets_of(raw: RawClient, group: str, topics: list[Any] | None = None, version: int = 1) -> Any:
    """What DescribeShareGroupOffsets says of a group."""
    wanted = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
    (answer,) = raw.send(DescribeShareGroupOffsetsRequest(groups=[wanted]), version).groups
    return answer


def test_offsets(raw: RawClient, member: RawShareConsumer, topic: tuple[str, bytes], produce: Any) -> None:
    """Start offsets and lag, moved by an admin, deleted, and gone with the group."""
    name, topic_id = topic
    group = member.group_id
    produce(5)
    member.fetch(topic_id, 0)
    member.acknowledge(topic_id, 0, (0, 1, [ACCEPT]))
    member.acknowledge(topic_id, 0, (2, 2, [ACCEPT]))

    def rows(version: int = 1) -> list[tuple[int, int, int]]:
        answer = offsets_of(raw, group, version=version)
        assert answer.error_code == ErrorCode.NONE
        assert [(each.topic_name, each.topic_id) for each in answer.topics] == [(name, topic_id)]
        return sorted(
            (each.partition_index, each.start_offset, each.lag) for each in answer.topics[0].partitions
        )

    assert rows() == [(0, 2, 2), (1, -1, -1)]
    named = [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]),
        DescribeShareGroupOffsetsRequestTopic(topic_name="no-such-topic", partitions=[0]),
    ]
    answer = offsets_of(raw, group, named)
    assert {
        each.topic_name: [(p.partition_index, p.start_offset, p.error_code) for p in each.partitions]
        for each in answer.topics
    } == {name: [(0, 2, 0)], "no-such-topic": [(0, -1, 0)]}
    alter = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=1)
                    for index in (0, 5)
                ],
            )
        ],
    )
    assert raw.send(alter, 0).error_code == ErrorCode.NON_EMPTY_GROUP
    forget = DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            DeleteShareGroupOffsetsRequestTopic(topic_name=name),
            DeleteShareGroupOffsetsRequestTopic(topic_name="no-such-topic"),
        ],
    )
    assert raw.send(forget, 0).error_code == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    altered = raw.send(alter, 0)
    assert [(p.partition_index, p.error_code) for p in altered.responses[0].partitions] == [(0, 0), (5, 3)]
    assert (altered.responses[0].topic_name, altered.responses[0].topic_id) == (name, topic_id)
    eventually(rows, [(0, 1, 4), (1, -1, -1)])
    forgotten = {each.topic_name: each for each in raw.send(forget, 0).responses}
    assert (forgotten[name].error_code, forgotten[name].topic_id) == (0, topic_id)
    assert forgotten["no-such-topic"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offsets_of(raw, group).topics == []
    (deleted,) = raw.send(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == ErrorCode.NONE
    (gone,) = raw.send(ShareGroupDescribeRequest(group_ids=[group]), 1).groups
    assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    refused = raw.send(forget, 0)
    assert (refused.error_code, refused.error_message) == (69, f"Group {group} not found.")


def test_offsets_are_altered_when_all_have_left(
    raw: RawClient, bootstrap: str, group: str, topic: tuple[str, bytes], produce: Any
) -> None:
    """Whoever comes next reads from there on, and everything as if for the first time. Kafka goes on with what it had
    for as long as a connection is open that somebody fetched with."""
    name, topic_id = topic
    produce(5)
    with RawClient.to(bootstrap) as own:
        member = RawShareConsumer(own, group, "m1", name)
        member.join_and_wait(2)
        assert acquired(member.fetch(topic_id, 0)) == {0: [(0, 4, 1)]}
        member.acknowledge(topic_id, 0, (0, 2, [ACCEPT]))
        assert member.acknowledge(topic_id, 0, (3, 3, [RELEASE]), share_session_epoch=-1).error_code == 0
        member.leave()
    wanted = AlterShareGroupOffsetsRequestTopic(
        topic_name=name,
        partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)],
    )

    def start_after_altering() -> int:
        # What a session gave back may be kept behind Kafka's answer, and even behind this.
        altered = raw.send(AlterShareGroupOffsetsRequest(group_id=group, topics=[wanted]), 0)
        assert [p.error_code for p in altered.responses[0].partitions] == [ErrorCode.NONE]
        described = offsets_of(raw, group).topics[0].partitions
        return next(int(each.start_offset) for each in described if each.partition_index == 0)

    eventually(start_after_altering, 1)
    other = RawShareConsumer(raw, group, "m2", name)
    other.join_and_wait(2)
    assert acquired(other.fetch(topic_id, 0, max_wait_ms=5000)) == {0: [(1, 4, 1)]}


def test_partitions_of_which_nothing_is_said(
    member: RawShareConsumer, topic: tuple[str, bytes], produce: Any
) -> None:
    """An acknowledgement without batches gets no row."""
    produce(1)
    assert acquired(member.fetch(topic[1], 0)) == {0: [(0, 0, 1)]}
    answer = member.acknowledge(topic[1], 0)
    assert (answer.error_code, answer.responses) == (ErrorCode.NONE, [])


def test_group_without_state(raw: RawClient, topic: tuple[str, bytes]) -> None:
    """A group that nobody joined gets no records."""
    stranger = RawShareConsumer(raw, f"share-{uuid.uuid4().hex[:8]}", "m1", topic[0])
    stranger.fetch(topic[1], 0, max_wait_ms=0)

    def codes() -> list[int]:
        answer = stranger.fetch(topic[1], max_wait_ms=100)
        return [row.error_code for each in answer.responses for row in each.partitions]

    eventually(codes, [ErrorCode.UNKNOWN_SERVER_ERROR])
