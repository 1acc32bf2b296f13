"""Stock consumers with `group.protocol=consumer` (KIP-848) on both brokers: sharing, hand-over, migration, tools.

The brokers of this file ask for quick heartbeats, so that a hand-over takes a fraction of a second.
"""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import BROKERS
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import describe
from compat_tests.raw_topics import create_topic

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PARTITIONS = 6


@pytest.fixture(scope="module", params=list(BROKERS))
def quick(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker that asks for a heartbeat every 200 ms."""
    with BROKERS[request.param](properties=QUICK) as running:
        yield running


@pytest.fixture
def topic(quick: BrokerProcess, topic_name: str) -> str:
    """A topic of six partitions."""
    with RawClient.to(quick.bootstrap) as raw:
        create_topic(raw, topic_name, PARTITIONS)
    return topic_name


@pytest.fixture
def group() -> str:
    """The name of a new group."""
    return f"group-{uuid.uuid4().hex[:8]}"


def produce(bootstrap: str, topic: str, count: int) -> None:
    """Numbered records, evenly over the partitions."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


class Reader:
    """A consumer in a thread of its own; `seen` counts the records it got."""

    def __init__(self, bootstrap: str, group: str, *topics: str, **settings: str) -> None:
        self.seen: Counter[int] = Counter()
        self.assigned: set[int] = set()
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **configs,
            }
        )
        self.consumer.subscribe(list(topics))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            record: Any = self.consumer.poll(0.05)
            if record is not None and record.error() is None:
                self.seen[int(record.value())] += 1
                self.consumer.commit(message=record, asynchronous=False)
            self.assigned = {each.partition for each in self.consumer.assignment()}

    def close(self) -> None:
        """Leave the group in good order."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(30)
        self.consumer.close()


NewReader = Callable[..., Reader]


@pytest.fixture
def new_reader(quick: BrokerProcess, group: str) -> Iterator[NewReader]:
    """Makes readers of the group, and closes them when the test is over."""
    made: list[Reader] = []

    def make(*topics: str, **settings: str) -> Reader:
        made.append(Reader(quick.bootstrap, group, *topics, **settings))
        return made[-1]

    yield make
    for reader in made:
        reader.close()


def test_consumers_come_and_go(quick: BrokerProcess, new_reader: NewReader, topic: str, group: str) -> None:
    """Three members share the partitions, one leaves, and every record is read; none twice, as all is committed."""
    produce(quick.bootstrap, topic, 300)
    readers = [new_reader(topic)]
    eventually(lambda: len(readers[0].assigned), PARTITIONS)
    readers += [new_reader(topic) for _ in range(2)]
    eventually(lambda: sorted(len(reader.assigned) for reader in readers), [2, 2, 2])
    assert set.union(*(reader.assigned for reader in readers)) == set(range(PARTITIONS))
    produce(quick.bootstrap, topic, 300)
    readers[1].close()
    eventually(lambda: (len(readers[0].assigned), len(readers[2].assigned)), (3, 3))
    eventually(lambda: sum((reader.seen for reader in readers), Counter()).total(), 600)
    total = sum((reader.seen for reader in readers), Counter())
    assert total == Counter(dict.fromkeys(range(300), 2))
    for reader in (readers[0], readers[2]):
        reader.close()
    with RawClient.to(quick.bootstrap) as raw:
        assert describe(raw, group).group_state == "Empty"


@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_assignors(
    quick: BrokerProcess, new_reader: NewReader, topic: str, group: str, assignor: str
) -> None:
    """`group.remote.assignor` chooses on the broker."""
    readers = [new_reader(topic, group_remote_assignor=assignor) for _ in range(2)]
    eventually(lambda: [len(reader.assigned) for reader in readers], [3, 3])
    with RawClient.to(quick.bootstrap) as raw:
        assert describe(raw, group).assignor_name == assignor
    if assignor == "range":
        assert {frozenset(reader.assigned) for reader in readers} == {
            frozenset({0, 1, 2}),
            frozenset({3, 4, 5}),
        }


def test_a_static_member_restarts(
    quick: BrokerProcess, new_reader: NewReader, topic: str, group: str
) -> None:
    """It has its partitions again at once, and the other member noticed nothing."""
    first = new_reader(topic, group_instance_id="one")
    second = new_reader(topic, group_instance_id="two")
    eventually(lambda: (len(first.assigned), len(second.assigned)), (3, 3))
    before = first.assigned
    with RawClient.to(quick.bootstrap) as raw:
        epoch = describe(raw, group).group_epoch
        first.close()
        again = new_reader(topic, group_instance_id="one")
        eventually(lambda: again.assigned, before)
        assert describe(raw, group).group_epoch == epoch
    assert len(second.assigned) == 3


def test_a_regular_expression(quick: BrokerProcess, new_reader: NewReader, topic: str, group: str) -> None:
    """It is sent to the broker, which matches it."""
    reader = new_reader(f"^{topic}.*")
    eventually(lambda: len(reader.assigned), PARTITIONS)
    with RawClient.to(quick.bootstrap) as raw:
        (member,) = describe(raw, group).members
        assert f"^{topic}.*" in member.subscribed_topic_regex


def test_a_classic_consumer_is_joined_and_left_alone_again(
    quick: BrokerProcess, new_reader: NewReader, topic: str, group: str
) -> None:
    """Rolling upgrade and back: classic, then both, then classic; offsets go on and nobody stops for good."""
    produce(quick.bootstrap, topic, 60)
    classic = {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky"}
    old = new_reader(topic, **classic, heartbeat_interval_ms="200")
    eventually(lambda: old.seen.total(), 60)
    new = new_reader(topic)
    eventually(lambda: (len(old.assigned), len(new.assigned)), (3, 3))
    with RawClient.to(quick.bootstrap) as raw:
        assert {member.member_type for member in describe(raw, group).members} == {0, 1}
    produce(quick.bootstrap, topic, 60)
    eventually(lambda: (old.seen + new.seen).total(), 120)
    new.close()
    eventually(lambda: len(old.assigned), PARTITIONS)
    produce(quick.bootstrap, topic, 60)
    eventually(lambda: (old.seen + new.seen).total(), 180)
    assert old.seen + new.seen == Counter(dict.fromkeys(range(60), 3))


def test_java_console_consumer(quick: BrokerProcess, topic: str, group: str) -> None:
    """The Java consumer reads everything, commits, and ConsumerGroupCommand shows it."""
    produce(quick.bootstrap, topic, 30)
    read = quick.tool(
        CONSOLE_CONSUMER,
        *(
            "--topic",
            topic,
            "--group",
            group,
            "--from-beginning",
            "--max-messages",
            "30",
            "--timeout-ms",
            "30000",
        ),
        *("--command-property", "group.protocol=consumer"),
    )
    assert sorted(map(int, read.stdout.split())) == list(range(30)), read.stdout + read.stderr
    described = quick.tool(GROUPS, "--describe", "--group", group, "--offsets")
    rows = [line.split() for line in described.stdout.splitlines() if line.startswith(group)]
    assert sorted((row[1], int(row[2]), row[3], row[4], row[5]) for row in rows) == [
        (topic, number, "5", "5", "0") for number in range(PARTITIONS)
    ], described.stdout + described.stderr
    state = quick.tool(GROUPS, "--describe", "--group", group, "--state")
    assert "Empty" in state.stdout, state.stdout + state.stderr
    listed = quick.tool(GROUPS, "--list", "--type", "consumer")
    assert group in listed.stdout.split()
    committed = Consumer({"bootstrap.servers": quick.bootstrap, "group.id": group}).committed(
        [TopicPartition(topic, 0)], timeout=10
    )
    assert committed[0].offset == 5
