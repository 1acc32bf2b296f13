"""The same groups through Kafka's own assignors: the same assignments."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath
from ottla.group_coordinator.consumer.assignors import ASSIGNORS
from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, Partitions
from ottla.wire.uuids import format_uuid, parse_uuid
from tests.group_coordinator.consumer.groups import group_specs

shared_process = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)


class KafkaAssignors:
    """AssignorBridge.java, running."""

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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return {
            member_id: {parse_uuid(topic): frozenset(partitions) for topic, partitions in topics.items()}
            for member_id, topics in json.loads(self._process.stdout.readline()).items()
        }


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAssignors]:
    """A Java process for this file."""
    classes = tmp_path_factory.mktemp("classes")
    compile_java(Path(__file__).with_name("AssignorBridge.java"), classes, kafka_classpath())
    command = [
        java_executable(),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{classes}:{kafka_classpath()}",
        "AssignorBridge",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield KafkaAssignors(process)
        assert process.stdin is not None
        process.stdin.close()


@shared_process
@given(group=group_specs(homogeneous=False))
def test_uniform_with_different_subscriptions(kafka: KafkaAssignors, group: GroupSpec) -> None:
    """The order of members and topics is fixed here, so every partition has the same owner."""
    assert ASSIGNORS["uniform"](group) == kafka.assign("uniform", group)


@shared_process
@given(group=group_specs(homogeneous=True, max_topics=1))
def test_uniform_with_one_topic(kafka: KafkaAssignors, group: GroupSpec) -> None:
    """With one topic there is no order of topics, and every partition has the same owner."""
    assert ASSIGNORS["uniform"](group) == kafka.assign("uniform", group)


@shared_process
@given(group=group_specs(homogeneous=True))
def test_uniform_with_equal_subscriptions(kafka: KafkaAssignors, group: GroupSpec) -> None:
    """Kafka takes topics in the order of a hash table, so counts are compared: of each member, and of what stays."""

    def shape(result: dict[str, Partitions]) -> dict[str, tuple[int, int]]:
        return {
            member_id: (
                sum(map(len, assigned.values())),
                sum(
                    len(held & assigned.get(topic, set()))
                    for topic, held in group.members[member_id].assigned.items()
                ),
            )
            for member_id, assigned in result.items()
        }

    assert shape(ASSIGNORS["uniform"](group)) == shape(kafka.assign("uniform", group))


@shared_process
@given(group=group_specs(homogeneous=False) | group_specs(homogeneous=True))
def test_range(kafka: KafkaAssignors, group: GroupSpec) -> None:
    """Ranges do not depend on any order."""
    assert ASSIGNORS["range"](group) == kafka.assign("range", group)
