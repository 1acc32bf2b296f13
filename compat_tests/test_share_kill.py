"""Java's share consumers are killed under load: nothing is lost, nothing that was accepted comes again, and every
delivery of a record is counted once."""

import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import BROKERS
from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath
from compat_tests.kafka.tools import QUICK_START
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import configure_group
from compat_tests.raw_topics import create_topic

PARTITIONS, MEMBERS, KILLED, LIMIT = 2, 4, 2, 8
FIRST_RECORDS, RECORDS = 600, 4000
PATIENCE_SECONDS = 90
SOURCE = Path(__file__).parent / "kafka" / "java" / "ShareMember.java"
QUICK = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "4000",
    "group.share.assignment.interval.ms": "0",
}
Place = tuple[int, int]


@pytest.fixture(params=list(BROKERS))
def quick(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker that misses dead members soon."""
    with BROKERS[request.param](properties=QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("classes")
    compile_java(SOURCE, directory, kafka_classpath())
    return directory


class Ledger:
    """What all members said; times are of one clock."""

    def __init__(self) -> None:
        self.reads: dict[Place, list[tuple[int, int]]] = defaultdict(list)
        self.accepted: dict[Place, list[int]] = defaultdict(list)
        self.last_reads: dict[int, set[Place]] = defaultdict(set)
        """What a member read and has not said what became of it: if it is killed, nobody knows."""
        self.readers: set[int] = set()
        self.changed = threading.Condition()

    def follow(self, number: int, process: "subprocess.Popen[str]") -> None:
        """Take in the lines of one member until it ends."""
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            if not line.endswith("\n") or len(words) < 5:
                continue  # killed while it wrote, or its last word
            at, place, count = int(words[0]), (int(words[2]), int(words[3])), int(words[4])
            with self.changed:
                if words[1] == "read":
                    self.reads[place].append((count, at))
                    self.last_reads[number].add(place)
                    self.readers.add(number)
                else:
                    self.last_reads[number].discard(place)
                    if words[1] == "accepted":
                        self.accepted[place].append(at)
                self.changed.notify_all()

    def done(self) -> set[Place]:
        """What was accepted, or may have been by those who were killed."""
        return set(self.accepted).union(*(self.last_reads[number] for number in range(KILLED)))

    def wait(self, done: int) -> None:
        """Until so many records are done with."""
        with self.changed:
            reached = self.changed.wait_for(lambda: len(self.done()) >= done, PATIENCE_SECONDS)
        assert reached, f"{len(self.done())} of {done}, by {len(self.readers)} members"


def produce(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "batch.num.messages": 50})
    for number in range(count):
        producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def test_members_are_killed(quick: BrokerProcess, classes: Path) -> None:
    """Two of four die while they read; the others read on to the end."""
    with RawClient.to(quick.bootstrap) as raw:
        create_topic(raw, "t", PARTITIONS)
        wait_for_coordinator(raw, "g")
        configure_group(raw, "g", share_auto_offset_reset="earliest", share_delivery_count_limit=str(LIMIT))
    ledger = Ledger()
    command = [
        java_executable(),
        "-Xmx96m",
        *QUICK_START,
        "-cp",
        f"{classes}:{kafka_classpath()}",
        "ShareMember",
    ]
    command += [f"bootstrap.servers={quick.bootstrap}", "group.id=g", "topic=t", "max.poll.records=50"]
    members = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(MEMBERS)
    ]
    followers = [
        threading.Thread(target=ledger.follow, args=(number, member)) for number, member in enumerate(members)
    ]
    sent = 0
    try:
        for follower in followers:
            follower.start()
        while len(ledger.readers) < MEMBERS:  # until every member has got its share
            produce(quick.bootstrap, FIRST_RECORDS)
            sent += FIRST_RECORDS
            ledger.wait(sent)
        produce(quick.bootstrap, RECORDS)
        sent += RECORDS
        for number in range(KILLED):
            ledger.wait(sent - RECORDS + (number + 1) * RECORDS // 8)
            members[number].kill()
        ledger.wait(sent)
    finally:
        for member in members:
            member.kill()
            member.wait()
        for follower in followers:
            follower.join()
        for member in members:
            for stream in (member.stdin, member.stdout):
                assert stream is not None
                stream.close()
    assert ledger.done() == {
        (partition, offset) for partition in range(PARTITIONS) for offset in range(sent // PARTITIONS)
    }
    assert [place for place, times in ledger.accepted.items() if len(times) > 1] == []
    released_again = 0
    for place, reads in ledger.reads.items():
        counts = [count for count, _ in sorted(reads)]
        assert len(set(counts)) == len(counts), f"{place} was delivered twice with one count: {counts}"
        in_time = [count for count, _ in sorted(reads, key=lambda each: each[1])]
        assert in_time == counts, f"{place} was counted backwards: {in_time}"
        assert counts[-1] <= LIMIT
        if ledger.accepted[place]:
            assert all(at <= ledger.accepted[place][0] for _, at in reads), (
                f"{place} came after it was accepted"
            )
        released_again += counts[:2] == [1, 2]
    assert released_again > sent // 7 - RECORDS // 8  # but for those that killed members had
