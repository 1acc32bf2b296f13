"""librdkafka as the client: each function does one thing to a running broker, and times it.

They are called in processes of their own (client_process.py). A broker is warmed up before, so that a JIT compiler has
done its work when the clock runs.
"""

import subprocess
import threading
import time
from collections.abc import Iterable
from itertools import cycle, islice
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.client_process import CHECKOUT, client_command
from benchmarks.measures import percentiles
from benchmarks.process_figures import Stopwatch, Target, timed

PATIENCE_SECONDS = 120
_STAMP_BYTES = 8


def create_topic(broker: Target, topic: str, partitions: int = 1) -> None:
    """Make a topic, and wait until all its partitions are served."""
    # Only whoever makes topics needs the codecs; the clients start quicker without them.
    from compat_tests.raw_client import RawClient
    from compat_tests.raw_topics import wait_until_served

    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(PATIENCE_SECONDS)
    with RawClient.to(broker.bootstrap) as raw:
        wait_until_served(raw, topic, partitions, PATIENCE_SECONDS)
    serial(broker, topic, 1)


def delete_topics(broker: Target, topics: list[str]) -> None:
    """Delete topics."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.delete_topics(topics).values():
        future.result(PATIENCE_SECONDS)


def produce(broker: Target, topic: str, size: int, count: int, acks: str) -> Stopwatch:
    """Send as fast as librdkafka can; all is acknowledged in the end."""
    return _send_all(broker, topic, [bytes(size)], count, {"acks": acks})


def produce_text(broker: Target, topic: str, size: int, count: int, codec: str) -> Stopwatch:
    """Send records of made-up prose, which compresses about as well as text does, from an idempotent producer."""
    return _send_all(
        broker, topic, prose(size), count, {"enable.idempotence": True, "compression.type": codec}
    )


def prose(size: int) -> list[bytes]:
    """A thousand values of words, always the same ones."""
    random = Random(size)
    words = [
        bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(2000)
    ]
    return [b" ".join(random.choices(words, k=size // 3 + 1))[:size] for _ in range(1000)]


def _send_all(
    broker: Target, topic: str, values: list[bytes], count: int, settings: dict[str, Any]
) -> Stopwatch:
    failures: list[str] = []
    own = {"linger.ms": 5, "queue.buffering.max.messages": 200_000, **settings}
    producer = _producer(broker, failures, **own)
    with timed(broker) as watch:
        for value in islice(cycle(values), count):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        assert producer.flush(PATIENCE_SECONDS) == 0
    assert failures == []
    return watch


def fetch(broker: Target, topic: str, count: int, consumers: int = 1) -> Stopwatch:
    """Read so many records from the beginning of partition 0, with each of the consumers all of them."""
    clients = [_consumer(broker) for _ in range(consumers)]
    sizes = [0] * consumers

    def read(number: int) -> None:
        received = 0
        clients[number].assign([TopicPartition(topic, 0, 0)])
        while received < count:
            messages = clients[number].consume(min(10_000, count - received), PATIENCE_SECONDS)
            assert messages, "no records arrive"
            sizes[number] += _size(messages)
            received += len(messages)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(1, consumers)]
    with timed(broker) as watch:
        for thread in threads:
            thread.start()
        read(0)
        for thread in threads:
            thread.join()
    for client in clients:
        client.close()
    assert min(sizes) == max(sizes), "a consumer did not get all"
    watch.result["bytes"] = sum(sizes)
    return watch


def _size(messages: Iterable[Any]) -> int:
    size = 0
    for message in messages:
        assert message.error() is None, message.error()
        size += len(message)
    return size


def serial(broker: Target, topic: str, count: int) -> Stopwatch:
    """One record after the other, each waiting for its acknowledgement of acks=all; latencies in milliseconds."""
    failures: list[str] = []
    producer = _producer(broker, failures, **{"acks": "all", "linger.ms": 0})
    latencies = []
    with timed(broker) as watch:
        for _ in range(count):
            before = time.perf_counter()
            producer.produce(topic, b"x" * 100)
            producer.flush(PATIENCE_SECONDS)
            latencies.append((time.perf_counter() - before) * 1000)
    assert failures == []
    watch.result.update(percentiles(latencies))
    return watch


def small_requests(broker: Target, topic: str, producers: int, count: int) -> Stopwatch:
    """Several producers at once, each with one record a request, `count` requests in total."""
    failures: list[str] = []
    settings = {"acks": "all", "linger.ms": 0, "batch.num.messages": 1}
    clients = [_producer(broker, failures, **settings) for _ in range(producers)]
    with timed(broker) as watch:
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
    return watch


def end_to_end(broker: Target, topic: str, rate: int, seconds: float) -> Stopwatch:
    """From a producer in another process that sends `rate` records a second to this consumer; latencies in
    milliseconds. The first fifth is not counted."""
    consumer = _consumer(broker, **{"enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0)])
    while (message := consumer.poll(PATIENCE_SECONDS)) is None or not message.error():
        assert message is not None, "the end of the partition is not reached"
    count = int(rate * seconds)
    latencies: list[float] = []
    with timed(broker) as watch:
        arguments = client_command(broker, paced, topic=topic, rate=rate, count=count)
        with subprocess.Popen(arguments, cwd=CHECKOUT, stdout=subprocess.DEVNULL) as producer:
            while len(latencies) < count:
                message = consumer.poll(PATIENCE_SECONDS)
                assert message is not None, "no records arrive"
                if not message.error():
                    sent_ns = int.from_bytes((message.value() or b"")[:_STAMP_BYTES], "big")
                    latencies.append((time.monotonic_ns() - sent_ns) / 1e6)
            assert producer.wait(PATIENCE_SECONDS) == 0
    consumer.close()
    watch.result.update(percentiles(latencies[count // 5 :]))
    return watch


def paced(broker: Target, topic: str, rate: int, count: int) -> Stopwatch:
    """Send records of 100 bytes at an even pace, each with the moment of its sending, without waiting for more to send
    along."""
    failures: list[str] = []
    producer = _producer(broker, failures, **{"acks": "all", "linger.ms": 0})
    filling = bytes(100 - _STAMP_BYTES)
    producer.list_topics(topic, PATIENCE_SECONDS)
    with timed(broker) as watch:
        start = time.monotonic()
        for number in range(count):
            if (ahead := start + number / rate - time.monotonic()) > 0.0005:
                time.sleep(ahead)
            producer.produce(topic, time.monotonic_ns().to_bytes(_STAMP_BYTES, "big") + filling, partition=0)
            if number % 1000 == 999:
                producer.poll(0)  # or its queue, which counts what was delivered too, would be full some day
        assert producer.flush(PATIENCE_SECONDS) == 0
    assert failures == []
    return watch


def _consumer(broker: Target, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "group.id": "unused",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 500_000,
            "queued.min.messages": 1_000_000,
            **settings,
        }
    )


def _producer(broker: Target, failures: list[str], **settings: Any) -> Producer:
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
