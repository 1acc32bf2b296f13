"""librdkafka as the client: each function does one thing to a running broker, and times it.

They are called in processes of their own (client_process.py). A broker is warmed up before, so that a JIT compiler has
done its work when the clock runs.
"""

import json
import multiprocessing
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict
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
_STATISTICS_MS = 100
_MESSAGES = 500  # that a consumer takes at a time: as many as stay in the cache of a core


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
    waited_seconds = 0.0  # of all requests together, by the broker or for being sent to it

    def add_waits(text: str) -> None:
        nonlocal waited_seconds
        for each in json.loads(text)["brokers"].values():
            waited_seconds += (each["rtt"]["sum"] + each["outbuf_latency"]["sum"]) / 1e6

    own = {"linger.ms": 5, "queue.buffering.max.messages": 200_000, **settings}
    producer = _producer(
        broker, failures, stats_cb=add_waits, **{"statistics.interval.ms": _STATISTICS_MS}, **own
    )
    # An idempotent producer asks for its id when it is made, and half a second later if it has no connection by then,
    # which is a matter of chance: the clock runs from when it has sent something.
    producer.produce(topic, values[0])
    assert producer.flush(PATIENCE_SECONDS) == 0
    waited_seconds = 0.0
    with timed(broker) as watch:
        for value in islice(cycle(values), count):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        assert producer.flush(PATIENCE_SECONDS) == 0
    producer.poll(3 * _STATISTICS_MS / 1000)
    assert failures == []
    watch.under_way = waited_seconds / watch.seconds
    return watch


def fetch(broker: Target, topic: str, count: int) -> Stopwatch:
    """Read so many records from the beginning of partition 0."""
    consumer = _consumer(broker)
    with timed(broker) as watch:
        watch.result["bytes"] = _read(consumer, topic, count)
    consumer.close()
    return watch


def fetch_together(broker: Target, topic: str, count: int, consumers: int) -> Stopwatch:
    """The same by several consumers at once, each a process of its own that reads all of them; the clock runs until the
    last has done so."""
    fork = multiprocessing.get_context("fork")
    line = fork.Barrier(consumers + 1)
    done: Any = fork.Queue()
    arguments = (line, done, broker, topic, count)
    readers = [fork.Process(target=_fetch_at, args=arguments, daemon=True) for _ in range(consumers)]
    for reader in readers:
        reader.start()
    line.wait(PATIENCE_SECONDS)  # all are connected
    with timed(broker) as watch:
        line.wait(PATIENCE_SECONDS)
        each = [Stopwatch(**done.get(timeout=PATIENCE_SECONDS)) for _ in readers]
    for reader in readers:
        reader.join(PATIENCE_SECONDS)
    watch.client, watch.client_waits = max(((reader.client, reader.client_waits) for reader in each), key=sum)
    own = sum(reader.cores * reader.seconds - reader.broker_cpu_seconds for reader in each)
    watch.cores += own / watch.seconds
    sizes = [reader.result["bytes"] for reader in each]
    assert min(sizes) == max(sizes), "a consumer did not get all"
    watch.result["bytes"] = sum(sizes)
    return watch


def _fetch_at(line: Any, done: Any, broker: Target, topic: str, count: int) -> None:
    """In a process of its own: connect, wait for the others, read."""
    consumer = _consumer(broker)
    consumer.list_topics(topic, PATIENCE_SECONDS)
    line.wait(PATIENCE_SECONDS)
    line.wait(PATIENCE_SECONDS)
    with timed(broker) as watch:
        watch.result["bytes"] = _read(consumer, topic, count)
    done.put(asdict(watch))
    consumer.close()


def _read(consumer: Consumer, topic: str, count: int) -> int:
    received = size = 0
    consumer.assign([TopicPartition(topic, 0, 0)])
    while received < count:
        messages = consumer.consume(min(_MESSAGES, count - received), PATIENCE_SECONDS)
        assert messages, "no records arrive"
        size += _size(messages)
        received += len(messages)
    return size


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
            # As soon as there is room in its queue it goes on: by default it sleeps a second when the queue is full.
            "fetch.queue.backoff.ms": 1,
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
