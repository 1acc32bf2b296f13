"""Committed offsets: who may commit, what comes back, what is deleted and what expires."""

from typing import Any

import pytest

from ottla.group_coordinator.effects import GroupRequest, OffsetsGone, TopicsChanged
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.group_coordinator.classic_client import Member, form_group, subscription
from tests.group_coordinator.driver import Driver

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def commit(driver: Driver, offset: int = 7, *, topic: str = "t", version: int = 9, **more: Any) -> ErrorCode:
    partition = OffsetCommitRequestPartition(
        more.pop("partition", 0),
        offset,
        committed_metadata=more.pop("metadata", ""),
        committed_leader_epoch=more.pop("epoch", -1),
    )
    group = more.pop("group", "g")
    request = OffsetCommitRequest(
        group, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])], **more
    )
    return ErrorCode(driver.ask(request, version).topics[0].partitions[0].error_code)


def committed(driver: Driver, topic: str = "t", group_id: str = "g") -> int:
    return fetch(driver, topic, group_id).committed_offset


def fetch(driver: Driver, topic: str = "t", group_id: str = "g", topic_id: bytes = bytes(16)) -> Any:
    topics = [OffsetFetchRequestTopics(topic, topic_id, [0])]
    return (
        driver.shard.fetch_offsets(OffsetFetchRequestGroup(group_id, topics=topics)).topics[0].partitions[0]
    )


class TestCommit:
    def test_without_membership(self) -> None:
        """A consumer that assigns its partitions itself commits to a group that nobody joined."""
        driver = Driver()
        assert commit(driver, 5, epoch=3, metadata="note") is ErrorCode.NONE
        found = fetch(driver)
        assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (5, 3, "note")
        driver.restart()
        assert fetch(driver) == found
        assert [group.protocol_type for group in driver.shard.list_groups([], [])] == [""]

    def test_null_metadata_comes_back_empty(self) -> None:
        """As in Apache Kafka."""
        driver = Driver()
        commit(driver, metadata=None)
        assert fetch(driver).metadata == ""

    def test_metadata_too_large(self) -> None:
        """offset.metadata.max.bytes is a limit for each partition."""
        driver = Driver(offset_metadata_max_bytes="3")
        assert commit(driver, metadata="long") is ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert commit(driver, metadata="fit") is ErrorCode.NONE

    @pytest.mark.parametrize(
        ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_unknown_group(self, version: int, error: ErrorCode) -> None:
        """Somebody believes to be in a group that is not there."""
        assert commit(Driver(), version=version, generation_id_or_member_epoch=1, member_id="m") is error

    def test_as_a_member(self) -> None:
        """With the right id and generation, and nothing else."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        generation = {"generation_id_or_member_epoch": 1}
        assert commit(driver, member_id=member.member_id, **generation) is ErrorCode.NONE
        assert commit(driver, member_id="x", **generation) is ErrorCode.UNKNOWN_MEMBER_ID
        assert commit(driver, member_id=member.member_id) is ErrorCode.ILLEGAL_GENERATION
        assert commit(driver) is ErrorCode.UNKNOWN_MEMBER_ID
        stale = {"generation_id_or_member_epoch": 0}
        assert commit(driver, member_id=member.member_id, **stale) is ErrorCode.ILLEGAL_GENERATION

    def test_while_the_leader_assigns(self) -> None:
        """The generation is known and not yet complete."""
        driver = Driver()
        member = Member(driver)
        waiter = member.join()
        driver.wait_for(waiter)
        member.joined(waiter)
        code = commit(driver, member_id=member.member_id, generation_id_or_member_epoch=1)
        assert code is ErrorCode.REBALANCE_IN_PROGRESS

    def test_commit_is_a_sign_of_life(self) -> None:
        """A member that commits needs no heartbeat."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        for _ in range(3):
            driver.pass_ms(9_999)
            assert (
                commit(driver, member_id=member.member_id, generation_id_or_member_epoch=1) is ErrorCode.NONE
            )

    def test_refused_commit_leaves_no_group(self) -> None:
        """Nothing is kept of it."""
        driver = Driver()
        commit(driver, generation_id_or_member_epoch=1, member_id="m")
        assert driver.shard.groups == {}


class TestFetch:
    def test_nothing_committed(self) -> None:
        """Unknown groups and partitions have offset -1, which is no error."""
        assert (committed(Driver()), fetch(Driver()).error_code) == (-1, ErrorCode.NONE)

    def test_all_topics(self) -> None:
        """Null topics ask for everything."""
        driver = Driver()
        commit(driver, 1, topic="t")
        commit(driver, 2, topic="u")
        answer = driver.shard.fetch_offsets(OffsetFetchRequestGroup("g", topics=None))
        assert {topic.name: topic.partitions[0].committed_offset for topic in answer.topics} == {
            "t": 1,
            "u": 2,
        }

    def test_offset_of_another_topic_of_the_same_name(self) -> None:
        """The id tells them apart."""
        driver = Driver()
        partition = OffsetCommitRequestPartition(0, 9)
        topics = [OffsetCommitRequestTopic("t", b"t" * 16, [partition])]
        request = OffsetCommitRequest("g", topics=topics)
        driver.happen(GroupRequest(1, request, 10))
        assert fetch(driver, topic_id=b"t" * 16).committed_offset == 9
        assert fetch(driver, topic_id=b"x" * 16).committed_offset == -1


class TestDelete:
    def delete(self, driver: Driver, topic: str) -> Any:
        topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
        return driver.ask(OffsetDeleteRequest("g", topics))

    def test_offsets(self) -> None:
        """What nobody subscribes to can be deleted, also for ever."""
        driver = Driver()
        commit(driver)
        assert self.delete(driver, "t").topics[0].partitions[0].error_code == ErrorCode.NONE
        assert committed(driver) == -1
        driver.restart()
        assert committed(driver) == -1

    def test_subscribed_topic(self) -> None:
        """What members subscribe to cannot."""
        driver = Driver()
        form_group(driver, Member(driver))
        (topic,) = self.delete(driver, "t").topics
        assert topic.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert self.delete(driver, "u").topics[0].partitions[0].error_code == ErrorCode.NONE

    def test_group_of_others(self) -> None:
        """Of Connect's groups nobody knows what they read; an unknown group has nothing."""
        driver = Driver()
        assert self.delete(driver, "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        form_group(driver, Member(driver, protocol_type="connect"))
        assert self.delete(driver, "t").error_code == ErrorCode.NON_EMPTY_GROUP

    def test_groups(self) -> None:
        """Empty groups go with all they have; others stay."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        commit(driver, member_id=member.member_id, generation_id_or_member_epoch=1)
        request = DeleteGroupsRequest(["g", "unknown"])
        codes = [each.error_code for each in driver.ask(request).results]
        assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
        member.leave()
        assert driver.ask(request).results[0].error_code == ErrorCode.NONE
        assert (driver.shard.groups, list(driver.shard.offsets)) == ({}, [])
        driver.restart()
        assert (driver.shard.groups, list(driver.shard.offsets)) == ({}, [])

    def test_with_their_topic_bit_by_bit(self) -> None:
        """Offsets of a large topic go a few at a time, pending ones too, until nothing of it is left."""
        driver = Driver()
        for group in ("g", "h"):
            for partition in range(3):
                commit(driver, partition, topic="t", partition=partition, group=group)
        commit(driver, topic="u")
        gone = frozenset({"t", "v"})
        left = []
        while driver.shard.offsets.has_topics(gone):
            driver.happen(OffsetsGone(gone, 2))
            left.append(len(list(driver.shard.offsets)))
        assert left == [5, 3, 1]
        assert committed(driver, "u") == 7
        driver.restart()
        assert not driver.shard.offsets.has_topics(gone)

    def test_with_their_topic(self) -> None:
        """Offsets go when their topic goes, even while nobody looked."""
        driver = Driver()
        commit(driver, topic="t")
        commit(driver, topic="u")
        driver.happen(TopicsChanged(frozenset(), frozenset({"t"})))
        assert (committed(driver, "t"), committed(driver, "u")) == (-1, 7)
        del driver.topics.topics["u"]
        driver.restart()
        assert committed(driver, "u") == -1


class TestExpiry:
    """offsets.retention.minutes, by default seven days."""

    def test_simple_consumer(self) -> None:
        """Counted from the commit; the group goes with its last offset."""
        driver = Driver()
        commit(driver, 1, topic="t")
        driver.pass_ms(DAY_MS)
        commit(driver, 2, topic="u")
        driver.pass_ms(6 * DAY_MS + 10 * MINUTE_MS)
        assert (committed(driver, "t"), committed(driver, "u")) == (-1, 2)
        driver.pass_ms(DAY_MS)
        assert driver.shard.groups == {}
        assert driver.replayed().groups == {}

    def test_empty_group(self) -> None:
        """Counted from when the last member left."""
        driver = Driver()
        member = Member(driver, session_timeout_ms=1_800_000)
        form_group(driver, member)
        commit(driver, member_id=member.member_id, generation_id_or_member_epoch=1)
        for _ in range(10 * 48):
            driver.pass_ms(DAY_MS // 48 - 1)
            member.heartbeat()
        assert committed(driver) == 7
        member.leave()
        driver.pass_ms(7 * DAY_MS - 11 * MINUTE_MS)
        assert committed(driver) == 7
        driver.pass_ms(21 * MINUTE_MS)
        assert committed(driver) == -1

    def test_topic_no_longer_subscribed(self) -> None:
        """In a live group of consumers, what nobody subscribes to expires from its commit on."""
        driver = Driver()
        commit(driver, 1, topic="u")
        commit(driver, 2, topic="t")
        member = Member(driver, session_timeout_ms=1_800_000, protocols={"range": subscription("t")})
        form_group(driver, member)
        for _ in range(8 * 48):
            driver.pass_ms(DAY_MS // 48 - 1)
            member.heartbeat()
        assert (committed(driver, "u"), committed(driver, "t")) == (-1, 2)

    def test_retention_of_the_request(self) -> None:
        """Versions 2 to 4 bring a retention time, which counts instead."""
        driver = Driver()
        commit(driver, version=4, retention_time_ms=MINUTE_MS)
        driver.restart()
        driver.pass_ms(10 * MINUTE_MS)
        assert committed(driver) == -1

    def test_group_that_is_being_joined(self) -> None:
        """A group whose first member is about to come back is not cleared away under it."""
        driver = Driver(group_max_session_timeout_ms="3600000")
        member = Member(driver, session_timeout_ms=3_600_000)
        member.member_id = driver.answers[member.send_join()].member_id
        driver.pass_ms(11 * MINUTE_MS)
        waiter = member.send_join()
        driver.wait_for(waiter)
        member.joined(waiter)
