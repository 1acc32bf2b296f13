"""Random histories of share groups: both brokers answer the same, and go on with what the other has kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.random_share_groups import BATCHES, RECORDS, History, Side, state_of
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import RawShareConsumer, acquired
from compat_tests.raw_topics import create_topic

SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    # Snapshots among the updates.
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
HISTORIES, STEPS = 8, 40
TOPIC = "t"


def fill(broker: BrokerProcess, raw: RawClient) -> bytes:
    """A topic of one partition with batches of many sizes; its id."""
    topic_id = create_topic(raw, TOPIC, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5000})
    for size in BATCHES:
        for _ in range(size):
            producer.produce(TOPIC, b"x", partition=0)
        assert producer.flush(30) == 0
    return topic_id


@pytest.fixture(scope="module")
def sides() -> Iterator[list[tuple[RawClient, bytes]]]:
    """Both brokers with the same records, at the same time."""
    with (
        OttlaProcess(properties=SETTINGS) as ottla,
        RealKafka(properties=SETTINGS) as kafka,
        RawClient.to(ottla.bootstrap) as to_ottla,
        RawClient.to(kafka.bootstrap) as to_kafka,
    ):
        yield [(to_ottla, fill(ottla, to_ottla)), (to_kafka, fill(kafka, to_kafka))]


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_same_answers(sides: list[tuple[RawClient, bytes]], seed: int) -> None:
    """What is acquired in which runs, with which counts; errors and their words; what is kept."""
    for raw, _ in sides:
        wait_for_coordinator(raw, f"g{seed}")
    history = History(seed, f"g{seed}", [Side(raw, TOPIC, topic_id) for raw, topic_id in sides])
    history.start()
    history.play(STEPS)


def done_before(history: History) -> set[int]:
    """Offsets that are not delivered any more."""
    code, start_offset, batches = state_of(history.sides[0], history.group_id)
    assert code == 0
    done = set(range(max(start_offset, 0)))
    for first, last, state, _ in batches:
        if state != 0:
            done |= set(range(first, last + 1))
    return done


def deliver_all(history: History) -> set[int]:
    """Offsets that are still delivered."""
    (side,) = history.sides
    member: RawShareConsumer = side.members[0]
    found: set[int] = set()
    wait_ms = 10_000
    while rows := acquired(member.fetch(side.topic_id, 0, max_wait_ms=wait_ms)).get(0):
        wait_ms = 100
        offsets = {offset for first, last, _ in rows for offset in range(first, last + 1)}
        assert not offsets & found
        found |= offsets
        acks = [(first, last, [1]) for first, last, _ in rows]
        member.acknowledge(side.topic_id, 0, *acks)
    return found


def test_states_in_a_directory_that_changes_hands(tmp_path: Path) -> None:
    """Kafka, Ottla, Kafka. Closed sessions left their exact state; of the others nothing that was acknowledged comes
    again, and all the rest does."""
    data_dir = tmp_path / "data"
    histories: list[History] = []
    kept: list[tuple[object, set[int]]] = []

    def go_on(broker: BrokerProcess, *, is_last: bool = False) -> None:
        with RawClient.to(broker.bootstrap) as raw:
            if not histories:
                topic_id = fill(broker, raw)
                histories.extend(
                    History(seed, f"g{seed}", [Side(raw, TOPIC, topic_id)]) for seed in range(HISTORIES)
                )
                for history in histories:
                    wait_for_coordinator(raw, history.group_id)
                    history.start()
            else:
                for number, history in enumerate(histories):
                    wait_for_coordinator(raw, history.group_id)
                    history.resume(raw)
                    state, done = kept[number]
                    if number % 2:
                        assert state_of(history.sides[0], history.group_id) == state
                    found = done_before(history)
                    assert found >= done
                    if is_last:
                        assert deliver_all(history) == set(range(RECORDS)) - found
            kept.clear()
            for number, history in enumerate(histories):
                history.play(0 if is_last else STEPS // 2)
                if number % 2:
                    history.close_all()
                kept.append((state_of(history.sides[0], history.group_id), done_before(history)))
        broker.stop()

    with RealKafka(data_dir, SETTINGS) as kafka:
        go_on(kafka)
    with OttlaProcess(data_dir, SETTINGS) as ottla:
        go_on(ottla)
    with RealKafka(data_dir, SETTINGS) as kafka:
        go_on(kafka, is_last=True)
