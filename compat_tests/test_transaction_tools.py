"""Kafka's tool for transactions, and with it the Java admin client, against both brokers.

Each call starts a JVM, so few calls look at much.
"""

import re
from collections.abc import Iterator

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import BROKERS
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transactions import RawProducer, read_committed
from ottla.wire.errors import ErrorCode

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
NONE = ErrorCode.NONE


@pytest.fixture(scope="module", params=list(BROKERS))
def trusting_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker that does not ask the coordinator about what it appends, so that a transaction can be left hanging."""
    with BROKERS[request.param](properties={"transaction.partition.verification.enable": "false"}) as running:
        yield running


def table(broker: BrokerProcess, *arguments: str) -> list[dict[str, str]]:
    """The rows that the tool prints, by column."""
    done = broker.tool(TRANSACTIONS, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [re.split(r"\s*\t\s*", line.rstrip()) for line in done.stdout.splitlines() if "\t" in line]
    return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]


def test_looking_at_transactions_and_terminating_one(trusting_broker: BrokerProcess, topic_name: str) -> None:
    """Listed, described and found in its partition; terminated, it is aborted and its producer fenced."""
    broker = trusting_broker
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, topic_name, 1)
        producer = RawProducer(raw, topic_name)
        assert producer.init() == NONE
        assert producer.produce(topic_name, 0, b"lost") == NONE
        (listed,) = [row for row in table(broker, "list") if row["TransactionalId"] == topic_name]
        assert (listed["ProducerId"], listed["TransactionState"]) == (str(producer.producer_id), "Ongoing")
        (described,) = table(broker, "describe", "--transactional-id", topic_name)
        assert described["TransactionState"] == "Ongoing"
        assert described["TransactionTimeoutMs"] == "60000"
        assert described["TopicPartitions"] == f"{topic_name}-0"
        (found,) = table(broker, "describe-producers", "--topic", topic_name, "--partition", "0")
        assert (found["ProducerId"], found["ProducerEpoch"]) == (str(producer.producer_id), "0")
        assert (found["LastSequence"], found["CurrentTransactionStartOffset"]) == ("0", "0")
        done = broker.tool(TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", topic_name)
        assert done.returncode == 0, done.stdout + done.stderr
        eventually(lambda: read_committed(raw, topic_name, 0), ([], True))
        assert producer.end(committed=True) == ErrorCode.PRODUCER_FENCED


def test_aborting_a_transaction_that_hangs(trusting_broker: BrokerProcess, topic_name: str) -> None:
    """Records that no transaction of the coordinator knows hold up the partition, until the tool aborts them."""
    broker = trusting_broker
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, topic_name, 1)
        producer = RawProducer(raw, topic_name, 1)
        assert producer.init() == NONE
        assert producer.produce(topic_name, 0, b"hanging") == NONE
        assert producer.state() == "Empty"
        assert read_committed(raw, topic_name, 0) == ([], False)
        done = broker.tool(
            TRANSACTIONS, "abort", "--topic", topic_name, "--partition", "0", "--start-offset", "0"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        eventually(lambda: read_committed(raw, topic_name, 0), ([], True))
        (found,) = table(broker, "describe-producers", "--topic", topic_name, "--partition", "0")
        assert found["CurrentTransactionStartOffset"] == "None"
