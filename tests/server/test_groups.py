"""Groups on a live broker: parked members, restarts, stops."""

import threading
from pathlib import Path

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer
from compat_tests.raw_groups import RawMember, commit_request, fetch_offset, wait_for_coordinator
from compat_tests.raw_topics import create_topic
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest


def test_group_survives_a_restart(tmp_path: Path) -> None:
    """Members, their assignments and the offsets are there again; a member goes on as if nothing had been."""
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 2)
        wait_for_coordinator(raw, "g")
        member = RawMember(broker.bootstrap, "g")
        member.join()
        member.sync({member.member_id: b"mine"})
        assert member.commit("t", 1, 42, "note", leader_epoch=0) == ErrorCode.NONE
        member.close()
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_for_coordinator(raw, "g")
        again = RawMember(broker.bootstrap, "g")
        again.member_id, again.generation_id = member.member_id, member.generation_id
        assert again.heartbeat() == ErrorCode.NONE
        assert again.sync().assignment == b"mine"
        found = fetch_offset(raw, "g", "t", 1)
        assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (42, 0, "note")
        assert fetch_offset(raw, "g", "t", 0).committed_offset == -1
        again.close()


def test_stop_answers_parked_members() -> None:
    """Whoever waits for a rebalance is sent to look for the coordinator when the broker stops."""
    with Broker(group_initial_rebalance_delay_ms=60_000) as broker:
        with RawClient.to(broker.bootstrap) as raw:
            wait_for_coordinator(raw, "g")
        member = RawMember(broker.bootstrap, "g")
        answers: list[int] = []
        joined = threading.Thread(target=lambda: answers.append(member.join().error_code))
        joined.start()
        with RawClient.to(broker.bootstrap) as raw:
            waiting = ListGroupsRequest(states_filter=["PreparingRebalance"])
            eventually(lambda: len(raw.send(waiting, 5).groups), 1)
    joined.join(10)
    member.close()
    assert answers == [ErrorCode.NOT_COORDINATOR]


def test_offsets_go_with_their_topic() -> None:
    """A topic of the same name starts without offsets."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "g")
        raw.send(commit_request("g", "t", 0, 5), 9)
        assert fetch_offset(raw, "g", "t", 0).committed_offset == 5
        raw.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=9000), 6)
        create_topic(raw, "t", 1)
        assert fetch_offset(raw, "g", "t", 0).committed_offset == -1


def test_answers_that_wait_for_a_flush() -> None:
    """With a flush after every message, a commit and a heartbeat that writes are answered when it is done; the refused
    part of a commit is answered too."""
    with Broker(log_flush_interval_messages=1) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "g")
        assert committed(raw, commit_request("g", "t", 0, 5)) == [ErrorCode.NONE]
        both = commit_request("g", "t", 0, 6)
        both.topics += commit_request("g", "other", 0, 6).topics
        assert sorted(committed(raw, both)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert fetch_offset(raw, "g", "t", 0).committed_offset == 6
        wait_for_coordinator(raw, "new")
        assert RawConsumer(raw, "new", "m", "t").join().error_code == ErrorCode.NONE


def committed(raw: RawClient, request: OffsetCommitRequest) -> list[int]:
    """The errors of all partitions."""
    return [each.error_code for topic in raw.send(request, 9).topics for each in topic.partitions]
