"""Transactions of every stock client on both brokers, judged by the checker of histories.

The files beside this one have copiers that are killed, and Kafka Streams.
"""

import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from compat_tests.transactional.process import CLIENTS, ClientFailed
from compat_tests.transactional_run import TransactionRun

RACERS = ("confluent", "kafka_python", "aiokafka_library", "confluent")


@pytest.fixture
def run(bootstrap: str, topic_name: str) -> Iterator[TransactionRun]:
    """Topics of its own and a history."""
    with closing(TransactionRun(bootstrap, topic_name)) as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
def test_commit_and_abort(run: TransactionRun, client: str) -> None:
    """Committed transactions are read, aborted ones are not, with their offsets; by the same library's consumer."""
    run.fill(30)
    producer = run.producer(client)
    producer.init()
    producer.transact({0: ["a", "b"], 1: ["c"]}, offsets={0: 3, 1: 2})
    producer.transact({0: ["gone"], 2: ["gone", "too"]}, "abort", offsets={0: 9})
    producer.transact({2: ["d"]}, offsets={0: 4})
    producer.transact({1: ["gone"]}, "abort")
    assert run.finish() == {0: ["a", "b"], 1: ["c"], 2: ["d"]}

    def read(partition: int, isolation: str) -> list[str]:
        found = producer.client.ask("read", run.target, str(partition), isolation)
        return [each.partition(":")[2] for each in found]

    assert [read(partition, "read_committed") for partition in range(3)] == [["a", "b"], ["c"], ["d"]]
    assert [read(partition, "read_uncommitted") for partition in range(3)] == [
        ["a", "b", "gone"],
        ["c", "gone"],
        ["gone", "too", "d"],
    ]


def test_open_transaction_holds_readers_back(run: TransactionRun) -> None:
    """What is committed behind an open transaction is read when that has ended, in the order of the log."""
    first, second = run.producer("confluent", "first"), run.producer("confluent", "second")
    first.init()
    second.init()
    reader = run.client("confluent")
    seen: list[list[str]] = []

    def look() -> None:
        second.transact({0: ["behind"]})
        run.look_at_bounds()
        seen.append(reader.ask("read", run.target, "0", "read_committed"))
        seen.append(reader.ask("read", run.target, "0", "read_uncommitted"))

    first.transact({0: ["open"]}, before_end=look)
    assert [[each.partition(":")[2] for each in found] for found in seen] == [[], ["open", "behind"]]
    assert run.finish()[0] == ["open", "behind"]


@pytest.mark.parametrize(("client", "other"), list(zip(CLIENTS, CLIENTS[1:] + CLIENTS[:1], strict=True)))
def test_second_producer_fences_the_first(run: TransactionRun, client: str, other: str) -> None:
    """What the first had open is aborted, and it can commit nothing more; the second goes on."""
    first, second = run.producer(client), run.producer(other)
    first.init()
    first.transact({0: ["first"]})
    with pytest.raises(ClientFailed) as caught:
        first.transact({0: ["lost"], 1: ["lost"]}, before_end=second.init)
    assert caught.value.is_fenced, caught.value
    second.transact({1: ["second"]})
    with pytest.raises(ClientFailed):
        first.transact({2: ["never"]})
    second.transact({2: ["third"]})
    assert run.finish() == {0: ["first"], 1: ["second"], 2: ["third"]}


def test_producers_that_take_over_at_once(run: TransactionRun) -> None:
    """Four producers take over the same id at the same time, and then all commit: exactly one can."""
    producers = [run.producer(client) for client in RACERS]
    ready = threading.Barrier(len(producers))
    survivors: list[str] = []

    def race(number: int) -> None:
        producer = producers[number]
        with suppress(ClientFailed):
            try:
                ready.wait()
                producer.init()
            finally:
                ready.wait()
            producer.transact({0: [f"{number}"], 1: [f"{number}-again"]})
            survivors.append(f"{number}")

    threads = [threading.Thread(target=race, args=(number,)) for number in range(len(producers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (survivor,) = survivors
    assert run.finish() == {0: [survivor], 1: [f"{survivor}-again"], 2: []}
