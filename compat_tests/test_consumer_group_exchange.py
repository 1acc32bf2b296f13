"""Consumer groups in a data directory that two brokers use in turns: members go on, nothing is assigned anew."""

from pathlib import Path

from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer, describe
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic
from compat_tests.raw_topics import describe as describe_topic
from ottla.wire.errors import ErrorCode

QUICK = {"group.consumer.assignment.interval.ms": "0"}


def go_on(raw: RawClient, members: list[RawConsumer]) -> None:
    """Each member says that it is alive; epochs and partitions stay what they were."""
    wait_for_coordinator(raw, "g")
    for member in members:
        member.raw = raw
        before = member.epoch, member.owned
        eventually(lambda each=member: each.beat().error_code, ErrorCode.NONE)  # type: ignore[misc]
        assert (member.epoch, member.owned) == before
    assert describe(raw, "g").group_state == "Stable"


def settle(raw: RawClient, members: list[RawConsumer]) -> None:
    """Heartbeats until everybody has given up and taken what it should."""
    for _ in range(3):
        for member in members:
            assert member.beat().error_code == ErrorCode.NONE
    assert describe(raw, "g").group_state == "Stable"


def test_groups_go_on_under_the_other_broker(tmp_path: Path) -> None:
    """Ottla's groups under Kafka and Kafka's under Ottla, in the middle of their lives."""
    data_dir = tmp_path / "data"
    with OttlaProcess(data_dir, QUICK) as ottla, RawClient.to(ottla.bootstrap) as raw:
        create_topic(raw, "t", 6)
        node = str(describe_topic(raw, "t").partitions[0].leader_id)
        wait_for_coordinator(raw, "g")
        members = [
            RawConsumer(raw, "g", "a", "t", instance_id="i"),
            RawConsumer(raw, "g", "b", regex="t"),
            RawConsumer(raw, "g", "gone", "t"),
        ]
        for member in members:
            member.join()
        settle(raw, members)
        members.pop().leave()
        settle(raw, members)
        assert ottla.stop() == 0

    with RealKafka(data_dir, {"node.id": node, **QUICK}) as kafka, RawClient.to(kafka.bootstrap) as raw:
        go_on(raw, members)
        members.append(RawConsumer(raw, "g", "c", "t", assignor="range"))
        members[-1].join()
        settle(raw, members)
        kafka.stop()

    with OttlaProcess(data_dir, QUICK) as ottla, RawClient.to(ottla.bootstrap) as raw:
        go_on(raw, members)
        for member in members:
            assert member.leave().error_code == ErrorCode.NONE
        assert describe(raw, "g").group_state == "Empty"
