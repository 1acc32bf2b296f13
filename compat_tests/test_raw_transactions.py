"""Transactions request by request, in both versions of the protocol, on both brokers: who is refused, and with what."""

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import fetch_offset, wait_for_coordinator
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transactions import RawProducer, read_committed
from ottla.wire.errors import ErrorCode

NONE = ErrorCode.NONE
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def begin(producer: RawProducer, topic: str, *values: bytes) -> int:
    if producer.version == 1:
        error = producer.add(topic, 0)
        if error != NONE:
            return error
    return producer.produce(topic, 0, *values)


@VERSIONS
def test_commit_and_abort(raw: RawClient, topic_name: str, version: int) -> None:
    """Committed records and offsets are there, aborted ones are not; the states are told by their names."""
    create_topic(raw, topic_name)
    wait_for_coordinator(raw, topic_name)
    producer = RawProducer(raw, topic_name, version)
    assert producer.init() == NONE
    assert producer.state() == "Empty"
    assert begin(producer, topic_name, b"a") == NONE
    assert producer.offsets(topic_name, topic_name, 0, 5) == NONE
    assert producer.state() == "Ongoing"
    assert read_committed(raw, topic_name, 0) == ([], False)
    assert producer.end(committed=True) == NONE
    eventually(producer.state, "CompleteCommit")
    assert begin(producer, topic_name, b"b") == NONE
    assert producer.offsets(topic_name, topic_name, 0, 9) == NONE
    assert producer.end(committed=False) == NONE
    eventually(producer.state, "CompleteAbort")
    assert read_committed(raw, topic_name, 0) == ([b"a"], True)
    assert fetch_offset(raw, topic_name, topic_name, 0).committed_offset == 5


@VERSIONS
def test_fenced_by_a_second_producer(raw: RawClient, topic_name: str, version: int) -> None:
    """The first one's open transaction is aborted, and everything it asks for afterwards is refused."""
    create_topic(raw, topic_name)
    wait_for_coordinator(raw, topic_name)
    first, second = RawProducer(raw, topic_name, version), RawProducer(raw, topic_name, version)
    assert first.init() == NONE
    assert begin(first, topic_name, b"lost") == NONE
    assert second.init() == NONE
    fenced = ErrorCode.PRODUCER_FENCED
    assert first.end(committed=True) == fenced
    assert first.produce(topic_name, 0, b"lost") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.offsets(topic_name, topic_name, 0, 1) in (fenced, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert first.add(topic_name, 0) == fenced
    assert begin(second, topic_name, b"kept") == NONE
    assert second.end(committed=True) == NONE
    eventually(lambda: read_committed(raw, topic_name, 0), ([b"kept"], True))


@VERSIONS
def test_end_that_is_asked_for_again(raw: RawClient, topic_name: str, version: int) -> None:
    """A retried commit of the same transaction is answered as the first; an abort after it is refused."""
    create_topic(raw, topic_name)
    producer = RawProducer(raw, topic_name, version)
    assert producer.init() == NONE
    assert begin(producer, topic_name, b"a") == NONE
    before = producer.producer_epoch
    assert producer.end(committed=True) == NONE
    eventually(producer.state, "CompleteCommit")
    after, producer.producer_epoch = producer.producer_epoch, before
    assert producer.end(committed=True) == NONE
    assert producer.producer_epoch == after == before + (version == 2)
    producer.producer_epoch = before
    refused = ErrorCode.INVALID_TXN_STATE
    assert producer.end(committed=False) == refused
    assert read_committed(raw, topic_name, 0) == ([b"a"], True)


@VERSIONS
def test_time_out_aborts(raw: RawClient, topic_name: str, version: int) -> None:
    """A transaction that nobody ends is aborted by the broker, and its producer may not commit it any more."""
    create_topic(raw, topic_name)
    producer = RawProducer(raw, topic_name, version)
    assert producer.init(timeout_ms=200) == NONE
    assert begin(producer, topic_name, b"late") == NONE
    eventually(lambda: read_committed(raw, topic_name, 0), ([], True), patience_seconds=30)
    refused = ErrorCode.PRODUCER_FENCED if version == 1 else ErrorCode.INVALID_TXN_STATE
    assert producer.end(committed=True) == refused
    assert producer.init() == NONE
    assert begin(producer, topic_name, b"on time") == NONE
    assert producer.end(committed=True) == NONE
    eventually(lambda: read_committed(raw, topic_name, 0), ([b"on time"], True))


def test_partition_that_was_not_added(raw: RawClient, topic_name: str) -> None:
    """A producer of the first version must add a partition before it writes there (KIP-890)."""
    create_topic(raw, topic_name, 2)
    producer = RawProducer(raw, topic_name, version=1)
    assert producer.init() == NONE
    assert producer.add(topic_name, 0) == NONE
    assert producer.produce(topic_name, 0, b"a") == NONE
    assert producer.produce(topic_name, 1, b"b") == ErrorCode.TRANSACTION_ABORTABLE
    assert producer.end(committed=False) == NONE
