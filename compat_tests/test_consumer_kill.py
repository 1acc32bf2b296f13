"""Members of a consumer group are killed under load: nothing is skipped, nothing committed is read again."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import BROKERS
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic

PARTITIONS, RECORDS, MEMBERS, KILLED = 8, 4000, 5, 2
PATIENCE_SECONDS = 60
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.assignment.interval.ms": "0",
}


@pytest.fixture(params=list(BROKERS))
def quick(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker with short sessions."""
    with BROKERS[request.param](properties=QUICK) as running:
        yield running


class Ledger:
    """What all members read and committed, in the order in which they said so."""

    def __init__(self) -> None:
        self.values: Counter[str] = Counter()
        self.committed: Counter[int] = Counter()
        self.wrong: list[str] = []
        self.readers: set[int] = set()
        self.changed = threading.Condition()

    def follow(self, number: int, process: "subprocess.Popen[str]") -> None:
        """Take in the lines of one member until it ends."""
        assert process.stdout is not None
        for line in process.stdout:
            what, partition, offset, *value = line.split()
            with self.changed:
                if what == "committed":
                    self.committed[int(partition)] = max(int(offset), self.committed[int(partition)])
                else:
                    if int(offset) < self.committed[int(partition)]:
                        self.wrong.append(f"member {number} got {line.strip()} again")
                    self.values[value[0]] += 1
                    self.readers.add(number)
                self.changed.notify_all()

    def wait(self, values: int = 0, readers: int = 0) -> None:
        """Until so many values have been read, and by so many members."""
        with self.changed:
            reached = self.changed.wait_for(
                lambda: len(self.values) >= values and len(self.readers) >= readers, PATIENCE_SECONDS
            )
        assert reached, f"{len(self.values)} values, {len(self.readers)} members"


def produce(bootstrap: str, first: int, count: int) -> None:
    """Numbered records over all partitions."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, first + count):
        producer.produce("t", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def test_members_are_killed(quick: BrokerProcess) -> None:
    """Two of five die at once while they read; the other three read on to the end."""
    with RawClient.to(quick.bootstrap) as raw:
        create_topic(raw, "t", PARTITIONS)
    ledger = Ledger()
    command = [sys.executable, "-m", "compat_tests.consumer_process", quick.bootstrap, "g", "t"]
    root = Path(__file__).resolve().parents[1]
    members = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(MEMBERS)
    ]
    followers = [
        threading.Thread(target=ledger.follow, args=(number, member)) for number, member in enumerate(members)
    ]
    try:
        for follower in followers:
            follower.start()
        produce(quick.bootstrap, 0, RECORDS // 4)
        sent = RECORDS // 4
        while len(ledger.readers) < MEMBERS:  # until every member has got its share
            produce(quick.bootstrap, sent, PARTITIONS)
            sent += PARTITIONS
            ledger.wait(values=sent)
        produce(quick.bootstrap, sent, RECORDS)
        sent += RECORDS
        ledger.wait(values=sent - RECORDS // 2)
        for member in members[:KILLED]:
            member.kill()
        ledger.wait(values=sent)
    finally:
        for member in members:
            member.kill()
            member.wait()
        for follower in followers:
            follower.join()
        for member in members:
            assert member.stdout is not None
            member.stdout.close()
    assert ledger.wrong == []
    assert set(ledger.values) == {str(number) for number in range(sent)}
    twice = sum(count - 1 for count in ledger.values.values())
    assert twice <= 2 * PARTITIONS, "more than what was read and not committed when its reader died"
