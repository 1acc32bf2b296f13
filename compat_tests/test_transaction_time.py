"""Transactions that take too long, and transactional ids that nobody uses, on both brokers."""

import threading
import time
from collections.abc import Iterator

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import BROKERS
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transaction_requests import Identity, TransactionRequests, name_of

EXPIRATION_MS = 3000
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "50",
    "transactional.id.expiration.ms": str(EXPIRATION_MS),
}


@pytest.fixture(scope="module", params=list(BROKERS))
def hasty_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    with BROKERS[request.param](properties=SETTINGS) as running:
        yield running


@pytest.fixture
def producer(hasty_broker: BrokerProcess, topic_name: str) -> Iterator[TransactionRequests]:
    with RawClient.to(hasty_broker.bootstrap) as raw:
        create_topic(raw, topic_name, 2)
        yield TransactionRequests(raw, topic_name)


def test_a_transaction_that_takes_too_long_is_aborted(producer: TransactionRequests) -> None:
    """Its producer is fenced by a bumped epoch, and may go on from there as the newest of its id."""
    producer.init()  # the topic of transactions is there and ready
    answer = producer.ask_init(timeout_ms=100)
    identity = Identity(answer.producer_id, answer.producer_epoch)
    topic = producer.transactional_id
    assert producer.add(identity, topic, [0, 1], 4) == {0: "NONE", 1: "NONE"}
    eventually(lambda: producer.describe().transaction_state, "CompleteAbort")
    state = producer.describe()
    assert (state.producer_id, state.producer_epoch) == (identity.producer_id, identity.producer_epoch + 1)
    assert state.topics == []
    assert producer.add(identity, topic, [0], 4) == {0: "PRODUCER_FENCED"}
    assert producer.add(identity, topic, [0], 1) == {0: "INVALID_PRODUCER_EPOCH"}
    assert producer.end(identity, 4) == "PRODUCER_FENCED"
    assert producer.end(identity, 5, commit=True) == "INVALID_TXN_STATE"
    assert producer.init(5, identity) == (identity.producer_id, identity.producer_epoch + 1)


def test_a_transaction_in_time_is_left_alone(producer: TransactionRequests) -> None:
    """What is open for less than its time-out is nobody's business."""
    identity = producer.init()
    assert producer.add(identity, producer.transactional_id, [0], 4) == {0: "NONE"}
    threading.Event().wait(0.3)
    assert producer.describe().transaction_state == "Ongoing"
    assert producer.end(identity, 5) == "NONE"


def test_unused_ids_are_forgotten(producer: TransactionRequests) -> None:
    """A new producer of the id begins anew; an id with an open transaction stays."""
    first = producer.init()
    busy = TransactionRequests(producer.raw, f"{producer.transactional_id}-busy")
    working = busy.init()
    assert busy.add(working, producer.transactional_id, [0], 4) == {0: "NONE"}
    eventually(lambda: name_of(producer.describe().error_code), "TRANSACTIONAL_ID_NOT_FOUND")
    assert producer.add(first, producer.transactional_id) == {0: "INVALID_PRODUCER_ID_MAPPING"}
    assert producer.end(first, 5) == "INVALID_PRODUCER_ID_MAPPING"
    second = producer.init()
    assert second.producer_id > first.producer_id
    assert second.producer_epoch == 0
    assert busy.describe().transaction_state == "Ongoing"
    assert busy.end(working, 5) == "NONE"


def test_use_keeps_an_id(producer: TransactionRequests) -> None:
    """The time counts from the last change."""
    identity = producer.init()
    deadline = time.monotonic() + EXPIRATION_MS / 1000 + 1
    while time.monotonic() < deadline:
        identity = producer.init(5, identity)
        threading.Event().wait(EXPIRATION_MS / 4000)
    assert identity.producer_epoch > 1
