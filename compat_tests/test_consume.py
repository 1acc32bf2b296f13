"""How reading behaves at the edges: waiting at the end, starting outside the log, limits smaller than a record."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.errors import OffsetOutOfRangeError as AiokafkaOutOfRange
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import OffsetOutOfRangeError

from compat_tests.clients import CLIENTS, Client, Message
from compat_tests.clients.aiokafka_client import AiokafkaClient
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.clients.kafka_python_client import KafkaPythonClient
from compat_tests.conftest import NewTopic

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@each_client
def test_a_waiting_reader_gets_the_next_record(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """A fetch that waits at the end is answered when a record comes, and holds up nobody meanwhile."""
    topic = new_topic()
    client.produce(bootstrap, topic, [Message(None, b"old")])
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(client.read, bootstrap, topic, start=1, count=1)
        assert client.watermarks(bootstrap, topic) == (0, 1)
        assert client.produce(bootstrap, topic, [Message(None, b"new")]) == [1]
        assert [stored.value for stored in waiting.result(30)] == [b"new"]


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (KafkaPythonClient(), OffsetOutOfRangeError),
        (AiokafkaClient(), AiokafkaOutOfRange),
        (ConfluentClient(), KafkaException),
    ],
    ids=["kafka-python", "aiokafka", "confluent-kafka"],
)
def test_an_offset_outside_the_log(
    client: Client, error: type[Exception], bootstrap: str, new_topic: NewTopic
) -> None:
    """Without a reset policy the consumer is told, and does not silently start elsewhere."""
    topic = new_topic()
    client.produce(bootstrap, topic, [Message(None, b"x")])
    with pytest.raises(error) as raised:
        client.read(bootstrap, topic, start=7, count=1)
    if isinstance(raised.value, KafkaException):
        assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_limits_smaller_than_a_record(bootstrap: str, new_topic: NewTopic) -> None:
    """At least one batch is sent however small the consumer's limits are; nobody gets stuck."""
    topic = new_topic()
    values = [bytes([65 + n]) * 300_000 for n in range(3)]
    for value in values:
        ConfluentClient().produce(bootstrap, topic, [Message(None, value)])

    with closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, max_partition_fetch_bytes=1000, fetch_max_bytes=1000
        )
    ) as reader:
        reader.assign([TopicPartition(topic, 0)])
        reader.seek(TopicPartition(topic, 0), 0)
        assert [next(reader).value for _ in values] == values

    limits = {"fetch.message.max.bytes": 1000, "fetch.max.bytes": 1000, "message.max.bytes": 1000}
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    with closing(Consumer({**settings, **limits})) as librdkafka:
        librdkafka.assign([ConfluentPartition(topic, 0, 0)])
        messages = [librdkafka.poll(30) for _ in values]
        assert [message.value() for message in messages if message is not None] == values


def test_many_partitions_at_once(bootstrap: str, new_topic: NewTopic) -> None:
    """One consumer reads twenty partitions, each in its own order."""
    topic = new_topic(partitions=20)
    messages = [Message(None, b"%d" % n, partition=n % 20) for n in range(400)]
    ConfluentClient().produce(bootstrap, topic, messages, codec="lz4", idempotent=True)

    async def read_all() -> dict[int, list[bytes | None]]:
        reader = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
        async with reader:
            reader.assign([AiokafkaPartition(topic, number) for number in range(20)])
            found: dict[int, list[bytes | None]] = {number: [] for number in range(20)}
            while sum(map(len, found.values())) < 400:
                for records in (await reader.getmany(timeout_ms=30_000)).values():
                    for record in records:
                        found[record.partition].append(record.value)
        return found

    expected = {p: [b"%d" % n for n in range(p, 400, 20)] for p in range(20)}
    assert asyncio.run(asyncio.wait_for(read_all(), 60)) == expected


def test_many_clients_at_once(bootstrap: str, new_topic: NewTopic) -> None:
    """Ten producers at the same time on one partition: every record once, each producer's in order."""
    topic = new_topic()
    together = threading.Barrier(10)

    def write(number: int) -> None:
        together.wait(30)
        messages = [Message(b"%d" % number, b"%d" % n) for n in range(100)]
        ConfluentClient().produce(bootstrap, topic, messages, idempotent=number % 2 == 0)

    with ThreadPoolExecutor(10) as writers:
        list(writers.map(write, range(10)))
    stored = ConfluentClient().read(bootstrap, topic)
    assert [record.offset for record in stored] == list(range(1000))
    for number in range(10):
        values = [record.value for record in stored if record.key == b"%d" % number]
        assert values == [b"%d" % n for n in range(100)]
