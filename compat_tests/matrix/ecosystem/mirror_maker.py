"""MirrorMaker 2 from a real Kafka to the broker of the run and back: topics, configs, records, the offsets of groups.

The Kafka at the other end is one of the case's own. One MirrorMaker mirrors both ways, exactly once (KIP-618): each way
has a topic and a group of its own, and what came from the one cluster must not go back to it.
"""

import base64
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.kafka.jars import connect_classpath
from compat_tests.kafka.real import RealKafka
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.clients import client_named
from compat_tests.matrix.driver import Driver
from compat_tests.matrix.ecosystem.group_offsets import set_offsets
from compat_tests.matrix.ecosystem.java_process import JavaProcess, write_properties
from compat_tests.matrix.ecosystem.kafka_clients import MIRROR_MAKER
from compat_tests.matrix.stage import STAGE_CLIENT

AREA = "MirrorMaker 2"
MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
PATIENCE_SECONDS = 180
PARTITIONS = 2
RECORDS = 60
CONFIGS = {"max.message.bytes": "54321", "segment.bytes": "2000000", "retention.ms": "-1"}
QUICKLY = dict.fromkeys(
    (
        "emit.checkpoints.interval.seconds",
        "emit.heartbeats.interval.seconds",
        "refresh.groups.interval.seconds",
        "refresh.topics.interval.seconds",
        "sync.group.offsets.interval.seconds",
        "sync.topic.configs.interval.seconds",
    ),
    "1",
)
MADE_BY_IT = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
STORES = ("config.storage", "offset.storage", "status.storage")
ONE_REPLICA = {f"{name}.replication.factor": "1" for name in (*MADE_BY_IT, *STORES)}

Record = dict[str, Any]


def _encoded(words: str) -> str:
    return base64.b64encode(words.encode()).decode()


@dataclass
class Cluster:
    """One end: the name that MirrorMaker has for it, and a client of it."""

    name: str
    bootstrap: str
    driver: Driver

    def has(self, topic: str) -> bool:
        """Whether there is such a topic."""
        return self.driver.call("metadata", topics=[topic])["topics"][topic]["error"] is None

    def records(self, topic: str, partition: int) -> list[Record]:
        """All records of a partition; none while there is no such topic."""
        if not self.has(topic):
            return []
        found: list[Record] = self.driver.call(
            "fetch", topic=topic, partition=partition, offset=0, count=None, isolation="read_committed"
        )
        return found


@dataclass
class Way:
    """From one cluster to the other: a topic and a group there, and what they are here."""

    run: Run
    source: Cluster
    target: Cluster
    topic: str
    group: str

    @property
    def mirrored(self) -> str:
        """The name of the topic at the target."""
        return f"{self.source.name}.{self.topic}"

    def create(self) -> None:
        """Make the topic at the source."""
        made = {"name": self.topic, "partitions": PARTITIONS, "replication": 1, "configs": CONFIGS}
        created = self.source.driver.call("create_topics", topics=[made], validate_only=False)
        expect(created, {self.topic: None})

    def produce(self, first: int, count: int, partitions: int = PARTITIONS) -> None:
        """Write records with keys, headers and times, some without a value, to each partition at the source."""
        for partition in range(partitions):
            records = [
                {
                    "partition": partition,
                    "key": _encoded(f"key {number % 5}"),
                    "value": _encoded(f"value {number}") if number % 7 else None,
                    "headers": [["number", _encoded(str(number))], ["empty", None]],
                    "timestamp": 1_700_000_000_000 + number,
                }
                for number in range(first, first + count)
            ]
            sent = {"topic": self.topic, "records": records, "acks": -1, "codec": "lz4", "idempotent": True}
            self.source.driver.call("produce", **sent)

    def commit(self, offset: int) -> None:
        """Commit for the group at the source."""
        offsets = dict.fromkeys(range(PARTITIONS), offset)
        set_offsets(self.run, self.source.driver, self.group, self.topic, offsets)

    def committed(self) -> dict[str, int]:
        """What the group of that name has at the target for the mirrored topic."""
        wanted = {"group": self.group, "topic": self.mirrored, "partitions": list(range(PARTITIONS))}
        found: dict[str, int] = self.target.driver.call("committed", **wanted)
        return found

    def ends(self) -> dict[str, int]:
        """The offset behind the last record of each mirrored partition; markers of transactions come behind it."""
        return {str(at): self.target.records(self.mirrored, at)[-1]["offset"] + 1 for at in range(PARTITIONS)}

    def partitions(self) -> int:
        """How many partitions the mirrored topic has."""
        found = self.target.driver.call("metadata", topics=[self.mirrored])["topics"][self.mirrored]
        return len(found["partitions"])

    def configs(self) -> dict[str, str]:
        """Those configs of the mirrored topic that were set at the source."""
        found = self.target.driver.call("describe_configs", kind="topic", name=self.mirrored)
        return {name: found[name]["value"] for name in CONFIGS}


class Mirror:
    """MirrorMaker between the two clusters, one way and the other."""

    def __init__(self, run: Run, kafka: Cluster, here: Cluster, directory: Path) -> None:
        self._run = run
        self._directory = directory
        there_and_back = ((kafka, here), (here, kafka))
        self.ways = [Way(run, *ends, run.topic(), run.group()) for ends in there_and_back]
        for way in self.ways:
            way.create()

    def process(self) -> JavaProcess:
        """MirrorMaker itself."""
        settings = {
            "clusters": ",".join(way.source.name for way in self.ways),
            "topics": ",".join(way.topic for way in self.ways),
            "groups": ",".join(way.group for way in self.ways),
            "replication.factor": "1",
            "sync.group.offsets.enabled": "true",
            "offset.lag.max": "0",
            "offset.flush.interval.ms": "1000",
            **ONE_REPLICA,
            **QUICKLY,
        }
        for way in self.ways:
            settings[f"{way.source.name}.bootstrap.servers"] = way.source.bootstrap
            settings[f"{way.source.name}.plugin.discovery"] = "service_load"
            settings[f"{way.source.name}.exactly.once.source.support"] = "enabled"
            settings[f"{way.source.name}->{way.target.name}.enabled"] = "true"
        path = write_properties(self._directory / "mirror.properties", settings)
        return JavaProcess(MAIN_CLASS, [path], classpath=connect_classpath(), directory=self._directory)

    def wait_for(self, process: JavaProcess, observe: Callable[[], object], expected: object) -> None:
        """Observe until it is as expected, and fail at once should MirrorMaker have ended."""

        def alive() -> object:
            process.check()
            return observe()

        self._run.until(alive, lambda seen: seen == expected, PATIENCE_SECONDS)

    def wait_until_all_arrived(self, process: JavaProcess, partitions: int = PARTITIONS) -> None:
        """Wait until each way has as many records at the target as at the source, and hold them against those."""
        for way in self.ways:
            for partition in range(partitions):
                wanted = way.source.records(way.topic, partition)
                arrived = lambda way=way, at=partition: len(way.target.records(way.mirrored, at))  # noqa: E731
                self.wait_for(process, arrived, len(wanted))
                seen = way.target.records(way.mirrored, partition)
                expect(list(map(_bare, seen)), list(map(_bare, wanted)), f"{way.mirrored}-{partition}")


def _bare(record: Record) -> Record:
    """The record without its offset: transactions take some at the target."""
    return {name: value for name, value in record.items() if name != "offset"}


@contextmanager
def _mirror(run: Run) -> Iterator[Mirror]:
    client = client_named(STAGE_CLIENT)
    with (
        RealKafka() as kafka,
        Driver(client.ready(), kafka.bootstrap, client.environment) as there,
        Driver(client.ready(), run.bootstrap, client.environment) as here,
        tempfile.TemporaryDirectory(prefix="mirror-") as directory,
    ):
        # MirrorMaker keeps what it knows of a cluster under this name.
        names = [run.name(each) for each in ("there", "here")]
        clusters = (Cluster(names[0], kafka.bootstrap, there), Cluster(names[1], run.bootstrap, here))
        yield Mirror(run, *clusters, Path(directory))


@case(AREA, "from Kafka and back: topics, configs and records", clients=[MIRROR_MAKER])
def records(run: Run) -> object:
    """Before it starts, while it runs and while it is stopped; a partition and a config more on the way."""
    with _mirror(run) as mirror:
        for way in mirror.ways:
            way.produce(0, RECORDS)
        with mirror.process() as process:
            mirror.wait_until_all_arrived(process)
            changed = {"max.message.bytes": "65432"}
            for way in mirror.ways:
                expect(way.configs(), CONFIGS, f"the configs of {way.mirrored}")
                way.source.driver.call("create_partitions", topics={way.topic: PARTITIONS + 1})
                way.source.driver.call("alter_configs", kind="topic", name=way.topic, set=changed, delete=[])
            for way in mirror.ways:
                mirror.wait_for(process, way.partitions, PARTITIONS + 1)
                mirror.wait_for(process, way.configs, {**CONFIGS, **changed})
                way.produce(RECORDS, 10, PARTITIONS + 1)
            mirror.wait_until_all_arrived(process, PARTITIONS + 1)
        for way in mirror.ways:
            way.produce(RECORDS + 10, 5)
        with mirror.process() as process:
            mirror.wait_until_all_arrived(process)
        answer = {}
        for way in mirror.ways:
            rows = [way.target.records(way.mirrored, at) for at in range(PARTITIONS + 1)]
            answer[way.mirrored] = [json.dumps(list(map(_bare, each))) for each in rows]
            expect(
                way.source.has(f"{way.target.name}.{way.mirrored}"), False, "the way back of a mirrored topic"
            )
        return answer


def _translated(way: Way) -> Callable[[], bool]:
    """Whether MirrorMaker has committed for the group, and nothing behind what it has copied.

    It translates by the pairs of offsets that it has noted down, and it does not note one for every record when it
    is busy. So each look brings another record and commits behind it.
    """
    numbers = itertools.count(RECORDS)

    def observe() -> bool:
        number = next(numbers)
        way.produce(number, 1)
        way.commit(number + 1)
        committed, ends = way.committed(), way.ends()
        for partition, offset in committed.items():
            expect(offset <= ends[partition], True, f"{offset} is not behind {ends[partition]}")
        return all(offset > 1 for offset in committed.values())

    return observe


@case(AREA, "from Kafka and back: the offsets of groups", clients=[MIRROR_MAKER])
def offsets(run: Run) -> object:
    """What a group has committed is translated and committed at the target; the topics for it are there."""
    with _mirror(run) as mirror:
        for way in mirror.ways:
            way.produce(0, RECORDS)
        with mirror.process() as process:
            mirror.wait_until_all_arrived(process)
            for way in mirror.ways:
                mirror.wait_for(process, _translated(way), True)
            for way in mirror.ways:
                for cluster, topic in (
                    (way.target, "heartbeats"),
                    (way.target, f"{way.source.name}.heartbeats"),
                    (way.target, f"{way.source.name}.checkpoints.internal"),
                    (way.source, f"mm2-offset-syncs.{way.target.name}.internal"),
                ):
                    arrived = lambda cluster=cluster, topic=topic: cluster.records(topic, 0) != []  # noqa: E731
                    mirror.wait_for(process, arrived, True)
        groups = [way.target.driver.call("list_groups").get(way.group) for way in mirror.ways]
        return {"groups": groups}
