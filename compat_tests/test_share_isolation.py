"""What a share group sees of transactions, by its isolation level."""

import uuid

import pytest
from confluent_kafka import Producer

from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import RawShareConsumer, acquired, configure_group
from compat_tests.raw_topics import create_topic

Rows = list[tuple[int, int, int]]


@pytest.fixture
def member(raw: RawClient, topic_name: str) -> RawShareConsumer:
    """The only member of a group that reads the topic from its beginning."""
    group = f"share-{uuid.uuid4().hex[:8]}"
    create_topic(raw, topic_name, 1)
    wait_for_coordinator(raw, group)
    configure_group(raw, group, share_auto_offset_reset="earliest", share_assignment_interval_ms="0")
    return RawShareConsumer(raw, group, "m", topic_name)


def rows(member: RawShareConsumer, *partitions: int, max_wait_ms: int = 5000) -> Rows:
    (topic_id,) = member.assigned
    return [
        row
        for each in acquired(member.fetch(topic_id, *partitions, max_wait_ms=max_wait_ms)).values()
        for row in each
    ]


def write(bootstrap: str, topic: str) -> Producer:
    """0 plain, 1-2 committed, 4-6 aborted, 8 plain, 9-10 of an open transaction, 11 plain; markers between."""
    plain = Producer({"bootstrap.servers": bootstrap})
    open_one = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-open"})
    ended = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-ended"})
    for producer in (ended, open_one):
        producer.init_transactions(30)

    def send(producer: Producer, count: int) -> None:
        for _ in range(count):
            producer.produce(topic, b"x", partition=0)
        assert producer.flush(30) == 0

    send(plain, 1)
    ended.begin_transaction()
    send(ended, 2)
    ended.commit_transaction(30)
    ended.begin_transaction()
    send(ended, 3)
    ended.abort_transaction(30)
    send(plain, 1)
    open_one.begin_transaction()
    send(open_one, 2)
    send(plain, 1)
    return open_one


def test_read_uncommitted(bootstrap: str, topic_name: str, member: RawShareConsumer) -> None:
    """It is the default, and gives everything, with the offsets of the markers."""
    open_one = write(bootstrap, topic_name)
    member.join_and_wait(1)
    assert rows(member, 0) == [(0, 11, 1)]
    open_one.abort_transaction(30)


def test_read_committed(bootstrap: str, topic_name: str, member: RawShareConsumer) -> None:
    """Aborted records are passed over and never come again; open transactions keep what is behind them waiting."""
    configure_group(member.raw, member.group_id, share_isolation_level="read_committed")
    open_one = write(bootstrap, topic_name)
    member.join_and_wait(1)
    assert rows(member, 0) == [(0, 3, 1), (7, 8, 1)]
    (topic_id,) = member.assigned
    for first, last in ((0, 3), (7, 8)):
        member.acknowledge(topic_id, 0, (first, last, [2]))
    assert rows(member) == [(0, 3, 2), (7, 8, 2)]
    assert rows(member, max_wait_ms=200) == []
    open_one.commit_transaction(30)
    assert rows(member) == [(9, 12, 1)]
