"""Stock consumers in groups: they share the partitions, take over from each other, and go on where others stopped."""

import pytest

from compat_tests.clients import Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.conftest import NewTopic
from compat_tests.group_readers import AiokafkaReader, ConfluentReader, KafkaPythonReader, Ledger, Reader

PARTITIONS = 4
EVERYTHING = set(range(PARTITIONS))

CLIENTS = [
    pytest.param(KafkaPythonReader, "range", id="kafka-python-range"),
    pytest.param(KafkaPythonReader, "sticky", id="kafka-python-sticky"),
    pytest.param(ConfluentReader, "roundrobin", id="confluent-roundrobin"),
    pytest.param(ConfluentReader, "cooperative-sticky", id="confluent-cooperative"),
    pytest.param(AiokafkaReader, "sticky", id="aiokafka-sticky"),
    pytest.param(AiokafkaReader, "roundrobin", id="aiokafka-roundrobin"),
]


class Group:
    """Readers of one topic, and what was produced to it."""

    def __init__(self, bootstrap: str, topic: str, reader: type[Reader], assignor: str) -> None:
        self.bootstrap, self.topic, self.reader, self.assignor = bootstrap, topic, reader, assignor
        self.ledger = Ledger()
        self.produced = 0

    def produce(self, count: int) -> None:
        numbers = range(self.produced, self.produced + count)
        messages = [Message(None, b"%d" % number, partition=number % PARTITIONS) for number in numbers]
        ConfluentClient().produce(self.bootstrap, self.topic, messages)
        self.produced += count

    def start(self) -> Reader:
        reader = self.reader(
            self.bootstrap, self.topic, f"{self.topic}-group", self.ledger, assignor=self.assignor
        )
        return reader.start()

    def wait_until_all_is_read(self) -> None:
        self.ledger.wait_for(lambda: len(self.ledger.values) == self.produced, "every record read")
        self.ledger.wait_for(lambda: sum(self.ledger.committed.values()) == self.produced, "and committed")

    def wait_until_shared(self, *readers: Reader) -> None:
        def is_shared() -> bool:
            parts = [reader.assigned for reader in readers]
            return all(parts) and set.union(*parts) == EVERYTHING and sum(map(len, parts)) == PARTITIONS

        self.ledger.wait_for(is_shared, f"{PARTITIONS} partitions shared by {len(readers)}")


@pytest.mark.parametrize(("reader", "assignor"), CLIENTS)
def test_share_take_over_and_resume(
    bootstrap: str, new_topic: NewTopic, reader: type[Reader], assignor: str
) -> None:
    """One reads all, two share, the second takes over, and a third goes on behind what they committed."""
    group = Group(bootstrap, new_topic(PARTITIONS), reader, assignor)
    group.produce(40)
    first = group.start()
    group.wait_until_shared(first)
    group.wait_until_all_is_read()
    second = group.start()
    group.wait_until_shared(first, second)
    group.produce(40)
    group.wait_until_all_is_read()
    first.stop()
    group.wait_until_shared(second)
    group.produce(40)
    group.wait_until_all_is_read()
    second.stop()
    group.produce(40)
    third = group.start()
    group.wait_until_all_is_read()
    third.stop()
    assert group.ledger.wrong == []
