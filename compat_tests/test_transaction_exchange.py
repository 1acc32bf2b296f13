"""Transactions in a data directory that two brokers use in turns: open ones stay open, fenced producers fenced."""

import functools
from pathlib import Path

from compat_tests.broker_process import BrokerProcess
from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import fetch_offset, wait_for_coordinator
from compat_tests.raw_topics import create_topic, describe, wait_until_served
from compat_tests.raw_transactions import RawProducer, read_committed
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest

FEATURES = "org.apache.kafka.tools.FeatureCommand"
NONE = ErrorCode.NONE


def begin(producer: RawProducer, partition: int, value: bytes, offset: int) -> None:
    """An open transaction with a record and an offset."""
    if producer.version == 1:
        assert producer.add("t", partition) == NONE
    assert producer.produce("t", partition, value) == NONE
    assert producer.offsets("g", "t", partition, offset) == NONE


def committed_offset(raw: RawClient, partition: int) -> int:
    offset: int = fetch_offset(raw, "g", "t", partition).committed_offset
    return offset


def take_turn(raw: RawClient, producers: list[RawProducer], fenced: RawProducer, turn: int) -> None:
    """End what the other broker left open, one way and the other, and leave new transactions open."""
    wait_for_coordinator(raw, "g")
    wait_until_served(raw, "t", 2)
    for partition, producer in enumerate(producers):
        producer.raw = raw
        eventually(producer.state, "Ongoing")
        values, is_stable = read_committed(raw, "t", partition)
        assert not is_stable
        committed = (partition + turn) % 2 == 0
        assert producer.end(committed) == NONE
        eventually(producer.state, "CompleteCommit" if committed else "CompleteAbort")
        expected = [*values, b"%d" % (turn - 1)] if committed else values
        eventually(functools.partial(read_committed, raw, "t", partition), (expected, True))
        if committed:
            eventually(functools.partial(committed_offset, raw, partition), turn - 1)
        begin(producer, partition, b"%d" % turn, turn)
    fenced.raw = raw
    assert fenced.end(committed=True) == ErrorCode.PRODUCER_FENCED


def test_transactions_go_on_under_the_other_broker(tmp_path: Path) -> None:
    """Ottla's transactions end under Kafka, Kafka's under Ottla, whole or not at all; ids and epochs go on."""
    data_dir = tmp_path / "data"
    with OttlaProcess(data_dir) as ottla, RawClient.to(ottla.bootstrap) as raw:
        create_topic(raw, "t", 2)
        node = str(describe(raw, "t").partitions[0].leader_id)
        wait_for_coordinator(raw, "g")
        producers = [RawProducer(raw, f"id-{version}", version) for version in (1, 2)]
        fenced = RawProducer(raw, "id-2", 2)
        for producer in (fenced, *producers):
            assert producer.init() == NONE
        for partition, producer in enumerate(producers):
            begin(producer, partition, b"0", 0)
        assert ottla.stop() == 0
    with RealKafka(data_dir, {"node.id": node}) as kafka, RawClient.to(kafka.bootstrap) as raw:
        take_turn(raw, producers, fenced, 1)
        kafka.stop()
    with OttlaProcess(data_dir) as ottla, RawClient.to(ottla.bootstrap) as raw:
        take_turn(raw, producers, fenced, 2)
        new = RawProducer(raw, "new", 2)
        assert new.init() == NONE
        assert new.producer_id > max(producer.producer_id for producer in producers)


def finalized(broker: BrokerProcess) -> int:
    """The level of transaction.version that clients are told."""
    with RawClient.to(broker.bootstrap) as raw:
        features = raw.send(ApiVersionsRequest("client", "1"), 4).finalized_features
    return next((each.max_version_level for each in features if each.name == "transaction.version"), 0)


def test_a_lower_level_is_kept(tmp_path: Path) -> None:
    """Where an admin has set transaction.version lower under Kafka, Ottla leaves it so and writes what it allows."""
    level = 0  # the one that leaves no trace in the image
    data_dir = tmp_path / "data"
    with RealKafka(data_dir) as kafka:
        assert finalized(kafka) == 2
        done = kafka.tool(FEATURES, "downgrade", "--feature", f"transaction.version={level}")
        assert done.returncode == 0, done.stdout + done.stderr
        eventually(lambda: finalized(kafka), level)
        with RawClient.to(kafka.bootstrap) as raw:
            create_topic(raw, "t", 1)
            wait_for_coordinator(raw, "g")
            producer = RawProducer(raw, "id", 1)
            assert producer.init() == NONE
            begin(producer, 0, b"0", 0)
        kafka.stop()
    with OttlaProcess(data_dir) as ottla, RawClient.to(ottla.bootstrap) as raw:
        assert finalized(ottla) == level
        wait_for_coordinator(raw, "g")
        wait_until_served(raw, "t", 1)
        producer.raw = raw
        eventually(producer.state, "Ongoing")
        assert producer.end(committed=True) == NONE
        eventually(lambda: read_committed(raw, "t", 0), ([b"0"], True))
        epoch = producer.producer_epoch
        begin(producer, 0, b"1", 1)
        again = RawProducer(raw, "id", 1)
        assert again.init() == NONE
        assert again.producer_epoch == epoch + 2
        eventually(lambda: read_committed(raw, "t", 0), ([b"0"], True))
