"""What is measured, with librdkafka as the client: each function does one thing to a running broker.

A broker is warmed up before, so that a JIT compiler has done its work when the clock runs.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.process_figures import cpu_seconds
from compat_tests.broker_process import BrokerProcess

PATIENCE_SECONDS = 120
MB = 1_000_000


class Stopwatch:
    """Wall time and the broker's CPU time of a stretch of work."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.broker_cpu_seconds = 0.0


@contextmanager
def timed(broker: BrokerProcess) -> Iterator[Stopwatch]:
    """Fill a stopwatch with the time of the block."""
    watch = Stopwatch()
    cpu_before, before = cpu_seconds(broker.pid), time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - before
    watch.broker_cpu_seconds = cpu_seconds(broker.pid) - cpu_before


def create_topic(broker: BrokerProcess, topic: str, partitions: int = 1) -> None:
    """Make a topic and wait for its leaders."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(PATIENCE_SECONDS)
    produce(broker, topic, b"first", 1, acks="all")


def produce(broker: BrokerProcess, topic: str, value: bytes, count: int, acks: str) -> None:
    """Send as fast as librdkafka can; return when all is acknowledged."""
    _send_all(broker, topic, [value], count, {"acks": acks})


def produce_text(broker: BrokerProcess, topic: str, count: int, codec: str, size: int = 1024) -> None:
    """Send records of made-up prose, which compresses about as well as text does, from an idempotent producer."""
    _send_all(broker, topic, prose(size), count, {"enable.idempotence": True, "compression.type": codec})


def prose(size: int) -> list[bytes]:
    """A thousand values of words, always the same ones."""
    random = Random(size)
    words = [
        bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(2000)
    ]
    return [b" ".join(random.choices(words, k=size // 3 + 1))[:size] for _ in range(1000)]


def _send_all(
    broker: BrokerProcess, topic: str, values: list[bytes], count: int, settings: dict[str, Any]
) -> None:
    failures: list[str] = []
    producer = _producer(
        broker, failures, **settings, **{"linger.ms": 5, "queue.buffering.max.messages": 200_000}
    )
    for value in islice(cycle(values), count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert failures == []


def fetch(broker: BrokerProcess, topic: str, count: int) -> int:
    """Read so many records from the beginning of partition 0; the bytes of their values."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 500_000,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    received = size = 0
    while received < count:
        messages = consumer.consume(min(10_000, count - received), PATIENCE_SECONDS)
        assert messages, "no records arrive"
        for message in messages:
            assert message.error() is None, message.error()
            size += len(message)
        received += len(messages)
    consumer.close()
    return size


def serial_latencies_ms(broker: BrokerProcess, topic: str, count: int) -> list[float]:
    """One record after the other, each waiting for its acknowledgement of acks=all."""
    failures: list[str] = []
    producer = _producer(broker, failures, **{"acks": "all", "linger.ms": 0})
    latencies = []
    for _ in range(count):
        before = time.perf_counter()
        producer.produce(topic, b"x" * 100)
        producer.flush(PATIENCE_SECONDS)
        latencies.append((time.perf_counter() - before) * 1000)
    assert failures == []
    return latencies


def small_requests(broker: BrokerProcess, topic: str, producers: int, count: int) -> None:
    """Several producers at once, each with one record a request, `count` requests in total."""
    failures: list[str] = []
    settings = {"acks": "all", "linger.ms": 0, "batch.num.messages": 1}
    clients = [_producer(broker, failures, **settings) for _ in range(producers)]
    for number in range(count // producers):
        for client in clients:
            client.produce(topic, b"x" * 100)
        if number % 100 == 99:
            # No more than a hundred or so in flight for each, as a busy but sane application has.
            while any(len(client) > 100 for client in clients):
                for client in clients:
                    client.poll(0.001)
    for client in clients:
        assert client.flush(PATIENCE_SECONDS) == 0
    assert failures == []


def _producer(broker: BrokerProcess, failures: list[str], **settings: Any) -> Producer:
    def delivered(error: KafkaError | None, _message: Any) -> None:
        failures.append(str(error))

    return Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            # Only failures come back to Python: a callback for each record would measure Python.
            "delivery.report.only.error": True,
            "on_delivery": delivered,
            **settings,
        }
    )
