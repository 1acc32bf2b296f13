"""Share groups on a live broker: locks that run out, what a restart remembers, and states asked for by brokers."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaProducer

from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import RawShareConsumer, ack_codes, acquired, configure_group
from compat_tests.raw_topics import create_topic
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import read_share_group_state, write_share_group_state
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.uuids import format_uuid

SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}


def produce(broker: Broker, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for number in range(count):
        producer.send("t", b"%d" % number, partition=0).get(10)
    producer.close()


def member_of(raw: RawClient, name: str = "m1") -> RawShareConsumer:
    member = RawShareConsumer(raw, "g", name, "t")
    member.join_and_wait(1)
    return member


def test_locks_run_out_and_restarts_remember(tmp_path: Path) -> None:
    """A waiting fetch gets records whose lock ran out; what was accepted is not delivered after a restart."""
    with Broker(SETTINGS, data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "g")
        configure_group(raw, "g", share_auto_offset_reset="earliest")
        produce(broker, 6)
        member, other = member_of(raw), member_of(raw, "m2")
        assert acquired(member.fetch(topic_id, 0)) == {0: [(0, 5, 1)]}
        assert acquired(other.fetch(topic_id, 0, max_wait_ms=20_000)) == {0: [(0, 5, 2)]}
        for first, last, kind in ((0, 1, 1), (3, 3, 1), (4, 4, 2)):
            assert ack_codes(other.acknowledge(topic_id, 0, (first, last, [kind]))) == [(0, None)]
    with Broker(SETTINGS, data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_for_coordinator(raw, "g")
        rows = acquired(member_of(raw, "m3").fetch(topic_id, 0))[0]
        # How often was kept when it was last released, which may have been while the broker stopped.
        assert [offset for first, last, _ in rows for offset in range(first, last + 1)] == [2, 4, 5]
        assert all(count in (2, 3) for _, _, count in rows)


def test_states_for_brokers() -> None:
    """The coordinator is found by key; a state is written and read back, with its epochs checked."""
    with Broker(SETTINGS) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "g")
        key = f"g:{format_uuid(topic_id)}:0"
        found = raw.send(FindCoordinatorRequest(key_type=2, coordinator_keys=[key, "g:0"]), 6).coordinators
        assert [each.error_code for each in found] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
        assert found[0].port == broker.port
        member_of(raw)

        def write(state_epoch: int) -> int:
            batch = write_share_group_state.StateBatch(3, 5, 2, 1)
            partition = write_share_group_state.PartitionData(0, state_epoch, 0, 3, 3, [batch])
            topic = write_share_group_state.WriteStateData(topic_id, [partition])
            request = write_share_group_state.WriteShareGroupStateRequest("g", [topic])
            code: int = raw.send(request, 1).results[0].partitions[0].error_code
            return code

        assert write(0) == ErrorCode.FENCED_STATE_EPOCH
        assert write(9) == ErrorCode.NONE
        wanted = read_share_group_state.ReadStateData(
            topic_id,
            [
                read_share_group_state.PartitionData(0, -1),
                read_share_group_state.PartitionData(7, -1),
            ],
        )
        request = read_share_group_state.ReadShareGroupStateRequest("g", [wanted])
        good, bad = raw.send(request, 0).results[0].partitions
        assert (good.start_offset, [each.last_offset for each in good.state_batches]) == (3, [5])
        assert bad.error_code == ErrorCode.INVALID_REQUEST


def test_latest_and_durations() -> None:
    """A group starts at the end unless it is told otherwise; a duration goes back from now."""
    with Broker(SETTINGS) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "g")
        produce(broker, 2)
        member = member_of(raw)
        assert acquired(member.fetch(topic_id, 0, max_wait_ms=0)) == {0: []}
        produce(broker, 1)
        assert acquired(member.fetch(topic_id)) == {0: [(2, 2, 1)]}
        configure_group(raw, "h", share_auto_offset_reset="by_duration:PT1H")
        other = RawShareConsumer(raw, "h", "m", "t")
        other.join_and_wait(1)
        assert acquired(other.fetch(topic_id, 0)) == {0: [(0, 2, 1)]}


def test_altered_offsets_apply_at_once() -> None:
    """Also when a member has left without closing its session; Kafka goes on with what it had until that ends."""
    with Broker(SETTINGS) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "g")
        configure_group(raw, "g", share_auto_offset_reset="earliest")
        produce(broker, 4)
        member = member_of(raw)
        assert acquired(member.fetch(topic_id, 0)) == {0: [(0, 3, 1)]}
        member.acknowledge(topic_id, 0, (0, 2, [1]))
        member.leave()
        partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
        topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[partition])
        raw.send(AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), 0)
        assert acquired(member_of(raw, "m2").fetch(topic_id, 0)) == {0: [(1, 3, 1)]}
        assert member.fetch(topic_id).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
