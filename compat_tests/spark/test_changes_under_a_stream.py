"""Streams while the cluster changes under them: records and topics deleted, partitions added."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient, TopicPartition

from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually
from compat_tests.spark.conftest import PATIENCE_SECONDS, Consume, ReadStream, StartStream, Write, numbered


@pytest.mark.parametrize("fail", ["true", "false"])
def test_deleted_records(
    fail: str,
    read_stream: ReadStream,
    consume: Consume,
    write: Write,
    new_topic: NewTopic,
    admin: KafkaAdminClient,
) -> None:
    """Records that were deleted before they were read: an error, or they are passed over."""
    topic = new_topic()
    stream = read_stream(subscribe=topic, failOnDataLoss=fail)
    write(topic, numbered(0, 10))
    assert consume(stream) == numbered(0, 10)
    write(topic, numbered(10, 20))
    admin.delete_records({TopicPartition(topic, 0): 15})
    if fail == "true":
        with pytest.raises(Exception, match=r"(?i)data.*lost|out of range|may have been lost|missing"):
            consume(stream)
    else:
        assert consume(stream) == numbered(0, 10) + numbered(15, 20)


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_topic_made_anew(
    fail: str,
    read_stream: ReadStream,
    consume: Consume,
    write: Write,
    new_topic: NewTopic,
    admin: KafkaAdminClient,
) -> None:
    """A topic that is deleted and made again ends before the stream's place: an error, or the stream waits there."""
    topic = new_topic()
    stream = read_stream(subscribe=topic, failOnDataLoss=fail)
    write(topic, numbered(0, 10))
    assert consume(stream) == numbered(0, 10)
    admin.delete_topics([topic])
    eventually(lambda: topic in admin.list_topics(), False)
    new_topic()
    write(topic, numbered(100, 105))
    if fail == "true":
        with pytest.raises(Exception, match=r"(?i)data.*lost|out of range|may have been lost|missing"):
            consume(stream)
    else:
        write(topic, numbered(105, 115))
        assert consume(stream) == numbered(0, 10) + numbered(110, 115)  # from the offset it had


def test_partitions_that_join(
    read_stream: ReadStream,
    start_stream: StartStream,
    write: Write,
    new_topic: NewTopic,
    admin: KafkaAdminClient,
) -> None:
    """A partition made while the stream runs is read from its beginning."""
    topic = new_topic()
    write(topic, numbered(0, 10))
    running = start_stream(read_stream(subscribe=topic))
    assert running.found() == numbered(0, 10)
    admin.create_partitions({topic: 3})
    write(topic, numbered(10, 20), partition=2)
    eventually(running.found, numbered(0, 20), PATIENCE_SECONDS)
