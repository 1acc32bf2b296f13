"""Transactions that their coordinator knows nothing of, found and ended by an admin with Kafka's own tool (KIP-664)."""

from collections.abc import Iterator

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import BROKERS
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, describe
from compat_tests.raw_transactions import RawProducer, read_committed
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

TOOL = "org.apache.kafka.tools.TransactionsCommand"
LONG_AGO_MS = 1_700_000_000_000


@pytest.fixture(params=list(BROKERS))
def trusting(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker that asks no coordinator about what it is sent."""
    settings = {"transaction.partition.verification.enable": "false"}
    with BROKERS[request.param](properties=settings) as running:
        yield running


def hang(raw: RawClient, topic: str) -> None:
    """Write in a transaction that was never begun."""
    producer = RawProducer(raw, "hanging", 1)
    assert producer.init() == ErrorCode.NONE
    batch = build_batch(
        [Record(0, LONG_AGO_MS, None, b"lost")],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, batch)])
    request = ProduceRequest("hanging", acks=-1, timeout_ms=10_000, topic_data=[data])
    (answered,) = raw.send(request, 10).responses
    assert answered.partition_responses[0].error_code == ErrorCode.NONE


def test_find_and_abort(trusting: BrokerProcess) -> None:
    """It is found by what the partition knows of its producer, ended with that, and found no more."""
    with RawClient.to(trusting.bootstrap) as raw:
        create_topic(raw, "t", 1, retention_ms="-1")
        node = str(describe(raw, "t").partitions[0].leader_id)
        hang(raw, "t")
        assert read_committed(raw, "t", 0) == ([], False)

        def find() -> list[str]:
            done = trusting.tool(TOOL, "find-hanging", "--broker-id", node)
            assert done.returncode == 0, done.stderr
            return [line.split()[0] for line in done.stdout.splitlines() if line.startswith("t ")]

        assert find() == ["t"]
        done = trusting.tool(TOOL, "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
        assert done.returncode == 0, done.stderr
        assert read_committed(raw, "t", 0) == ([], True)
        assert find() == []
