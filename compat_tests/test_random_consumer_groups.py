"""Random histories of consumer groups: both brokers answer the same, and find the same in the other's directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.random_consumer_groups import TOPICS, History, Side, described
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic

SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "4",
    "group.consumer.assignment.interval.ms": "0",
}
HISTORIES, STEPS = 12, 40


def create_topics(raw: RawClient) -> dict[str, bytes]:
    return {name: create_topic(raw, name, count) for name, count in TOPICS.items()}


@pytest.fixture(scope="module")
def sides() -> Iterator[list[tuple[RawClient, dict[str, bytes]]]]:
    """Both brokers with the same topics, at the same time."""
    with (
        OttlaProcess(properties=SETTINGS) as ottla,
        RealKafka(properties=SETTINGS) as kafka,
        RawClient.to(ottla.bootstrap) as to_ottla,
        RawClient.to(kafka.bootstrap) as to_kafka,
    ):
        yield [(raw, create_topics(raw)) for raw in (to_ottla, to_kafka)]


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_same_answers(sides: list[tuple[RawClient, dict[str, bytes]]], seed: int) -> None:
    """Epochs, assignments, errors and their words, commits, and what is described after every step."""
    for raw, _ in sides:
        wait_for_coordinator(raw, f"g{seed}")
    History(seed, f"g{seed}", [Side(raw, topic_ids) for raw, topic_ids in sides]).play(STEPS)


def test_groups_in_a_directory_that_changes_hands(tmp_path: Path) -> None:
    """Ottla, Kafka, Ottla: each finds every group as the other left it, and its members go on."""
    data_dir = tmp_path / "data"
    histories: list[History] = []

    def go_on(broker: BrokerProcess) -> None:
        with RawClient.to(broker.bootstrap) as raw:
            if not histories:
                topic_ids = create_topics(raw)
                histories.extend(
                    History(seed, f"g{seed}", [Side(raw, topic_ids)]) for seed in range(2 * HISTORIES)
                )
            for history in histories:
                (side,) = history.sides
                side.raw = raw
                wait_for_coordinator(raw, history.group_id)
                if history.steps:
                    assert described(side, history.group_id) == history.last_described
                history.play(STEPS // 2)
        broker.stop()

    with OttlaProcess(data_dir, SETTINGS) as ottla:
        go_on(ottla)
    with RealKafka(data_dir, SETTINGS) as kafka:
        go_on(kafka)
    with OttlaProcess(data_dir, SETTINGS) as ottla:
        go_on(ottla)
    assert sum(not history.is_over for history in histories) > HISTORIES
