"""Kafka's own group coordinator classes in a long-lived Java process."""

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath
from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, Partitions
from ottla.group_coordinator.topics import Topic
from ottla.wire.uuids import format_uuid, parse_uuid


class KafkaGroups:
    """GroupBridge.java, running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def assign(self, name: str, group: GroupSpec) -> dict[str, Partitions]:
        """What Kafka's assignor of this name makes of the group."""
        case: dict[str, Any] = {
            "assignor": name,
            "homogeneous": group.homogeneous,
            "counts": {format_uuid(topic): count for topic, count in group.partition_counts.items()},
            "members": [
                {
                    "id": member_id,
                    "instance": member.instance_id,
                    "topics": [format_uuid(topic) for topic in member.topic_ids],
                    "assigned": {format_uuid(topic): sorted(held) for topic, held in member.assigned.items()},
                }
                for member_id, member in group.members.items()
            ],
        }
        return {
            member_id: {parse_uuid(topic): frozenset(partitions) for topic, partitions in topics.items()}
            for member_id, topics in self._ask(case).items()
        }

    def hash(self, topics: Iterable[Topic]) -> int:
        """Kafka's hash of a group that subscribes to these topics."""
        described = [
            {
                "name": topic.name,
                "id": format_uuid(topic.topic_id),
                "racks": topic.partition_racks or [[]] * topic.partition_count,
            }
            for topic in topics
        ]
        return int(self._ask({"topics": described}))

    def match(self, expression: str, names: list[str]) -> tuple[str | None, set[str]]:
        """What is wrong with a regular expression in Kafka's words, and what it matches."""
        answer = self._ask({"regex": expression, "names": names})
        return answer["error"], set(answer["matches"])

    def _ask(self, case: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def kafka_groups() -> Iterator[KafkaGroups]:
    """Compile the bridge, run it, end it."""
    with TemporaryDirectory() as classes:
        compile_java(Path(__file__).with_name("GroupBridge.java"), Path(classes), kafka_classpath())
        classpath = f"{classes}:{kafka_classpath()}"
        command = [java_executable(), "-XX:TieredStopAtLevel=1", "-cp", classpath, "GroupBridge"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield KafkaGroups(process)
            assert process.stdin is not None
            process.stdin.close()
