"""Consumer groups on a live broker: restarts, topics that come, what may be switched off."""

from pathlib import Path

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer, describe
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest


def test_a_group_survives_a_restart(tmp_path: Path) -> None:
    """Members go on in their epochs with what they own."""
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t", 2)
        wait_for_coordinator(raw, "g")
        member = RawConsumer(raw, "g", "m", "t")
        member.join()
        assert member.owned == {topic_id: [0, 1]}
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_for_coordinator(raw, "g")
        member.raw = raw
        answer = member.beat()
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, 2, None)
        assert describe(raw, "g").group_state == "Stable"


def test_a_topic_that_is_created_reaches_its_subscribers() -> None:
    """By its name and by a regular expression, with the next heartbeat."""
    with Broker(group_consumer_assignment_interval_ms=0) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_for_coordinator(raw, "g")
        by_name, by_regex = RawConsumer(raw, "g", "n", "later"), RawConsumer(raw, "h", "r", regex="l.*")
        by_name.join()
        topic_id = create_topic(raw, "later", 1)
        by_name.beat()
        assert by_name.owned == {topic_id: [0]}
        by_regex.join()
        assert by_regex.owned == {topic_id: [0]}


def test_sessions_end() -> None:
    """A member that says nothing is removed."""
    short = {"group_consumer_min_session_timeout_ms": 100, "group_consumer_session_timeout_ms": 100}
    short |= {"group_consumer_min_heartbeat_interval_ms": 50, "group_consumer_heartbeat_interval_ms": 50}
    with Broker(**short) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_for_coordinator(raw, "g")
        assert RawConsumer(raw, "g", "m", "t").join().heartbeat_interval_ms == 50
        eventually(lambda: describe(raw, "g").group_state, "Empty")


def test_the_protocol_may_be_switched_off() -> None:
    """`group.coordinator.rebalance.protocols` decides, as in Kafka."""
    with (
        Broker(group_coordinator_rebalance_protocols="classic") as broker,
        RawClient.to(broker.bootstrap) as raw,
    ):
        wait_for_coordinator(raw, "g")
        assert RawConsumer(raw, "g", "m", "t").join().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert describe(raw, "g").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_clients_are_told_of_the_feature() -> None:
    """group.version 1 is finalized in a new directory."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        features = raw.send(ApiVersionsRequest("client", "1"), 4).finalized_features
        assert ("group.version", 1) in [(each.name, each.max_version_level) for each in features]
