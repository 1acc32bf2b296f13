"""The load generator of our own, against a real broker: it does what it counts, and notices errors."""

import os
from collections.abc import Iterator

import pytest

from benchmarks import raw_load
from benchmarks.client_process import ClientFailed, RunningBroker, run_client
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, fetch_records
from ottla.testing import Broker
from ottla.wire.records import iter_batches


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with Broker() as started:
        yield RunningBroker(started.bootstrap, os.getpid())


def made(broker: RunningBroker, topic: str, partitions: int = 1) -> str:
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, topic, partitions)
    return topic


def batches(broker: RunningBroker, topic: str, partition: int = 0) -> int:
    with RawClient.to(broker.bootstrap) as raw:
        return len(list(iter_batches(fetch_records(raw, topic, partition=partition))))


def test_every_request_is_appended_once(broker: RunningBroker) -> None:
    """Over several connections, round the partitions of each."""
    topic = made(broker, "written", 4)
    watch = raw_load.produce(broker, topic, size=10, records=1, requests=40, connections=2, partitions=4)
    assert watch.result == {"requests": 40, "bytes": 400}
    assert [batches(broker, topic, partition) for partition in range(4)] == [10, 10, 10, 10]


def test_more_connections_than_partitions(broker: RunningBroker) -> None:
    """Connections share the partitions there are."""
    topic = made(broker, "shared", 2)
    raw_load.produce(broker, topic, size=10, records=1, requests=8, connections=4, partitions=2)
    assert batches(broker, topic, 0) + batches(broker, topic, 1) == 8


def test_large_frames_and_all_of_the_log(broker: RunningBroker) -> None:
    """Frames larger than a socket's buffer go through whole, and are read to the last byte by each connection."""
    topic = made(broker, "large")
    raw_load.produce(broker, topic, size=1000, records=1000, requests=6)
    size = len(raw_load.batch(1000, 1000))
    watch = raw_load.fetch(
        broker, topic, batch_bytes=size, batch_records=1000, batches=6, per_fetch=2, connections=3
    )
    assert watch.result["requests"] == 9
    assert watch.result["bytes"] >= 3 * 6 * size


def test_reads_anywhere(broker: RunningBroker) -> None:
    """As many as are asked for, one batch each."""
    topic = made(broker, "anywhere")
    raw_load.produce(broker, topic, size=100, records=10, requests=20)
    size = len(raw_load.batch(100, 10))
    watch = raw_load.fetch(
        broker, topic, batch_bytes=size, batch_records=10, batches=20, is_random=True, fetches=50
    )
    assert watch.result["requests"] == 50


def test_each_consumer_gets_each_record(broker: RunningBroker) -> None:
    """They wait at the end, and one append answers all of them."""
    watch = raw_load.fan_out(broker, made(broker, "fan"), consumers=5, rounds=3)
    assert watch.result["requests"] == 15
    assert batches(broker, "fan") == 3


def test_connections_that_do_nothing(broker: RunningBroker) -> None:
    """They are answered once, and one beside them is served."""
    watch = raw_load.idle_connections(broker, made(broker, "beside"), count=20, serial_count=5)
    assert watch.result["p50"] > 0
    assert batches(broker, "beside") == 5


def test_an_error_code_is_noticed(broker: RunningBroker) -> None:
    """A broker that refuses quickly is not a fast one."""
    with pytest.raises(raw_load.RefusedRequest, match="error code 3"):
        raw_load.produce(
            broker, made(broker, "one"), size=10, records=1, requests=2, connections=2, partitions=2
        )


def test_a_client_is_a_process_of_its_own(broker: RunningBroker) -> None:
    """What it measured comes back, and so does what went wrong in it."""
    topic = made(broker, "process")
    watch = run_client(broker, raw_load.produce, topic=topic, size=10, records=1, requests=3)
    assert watch.result["requests"] == 3
    assert watch.seconds > 0
    assert batches(broker, topic) == 3
    with pytest.raises(ClientFailed, match=r"(?s)produce failed: .*error code"):
        run_client(broker, raw_load.produce, topic="", size=10, records=1, requests=1)
