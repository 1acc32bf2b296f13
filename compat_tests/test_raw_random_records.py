"""Records damaged at random, with a right checksum: both brokers judge them as the rules of log_store do.

The rules are run here beside the broker on the same bytes, so that every answer of Apache Kafka is a test of them.
"""

import random
import time
from typing import Any

import pytest

from compat_tests.bad_records import BadRecords, record
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import RealKafka
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, fetch_records
from compat_tests.test_raw_produce import produce
from ottla.config.topic_config import TopicConfig
from ottla.log_store.validation import prepare_client_batch, rules_of
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import Codec
from ottla.wire.records.header import split_batches

BATCHES = 250
HOUR_MS = 3_600_000
CONFIGS: dict[str, tuple[dict[str, Any], TopicConfig]] = {
    "plain": ({}, TopicConfig()),
    "compacted": ({"cleanup_policy": "compact"}, TopicConfig(cleanup_policy=frozenset({"compact"}))),
    "narrow": (
        {"message_timestamp_before_max_ms": str(HOUR_MS), "message_timestamp_after_max_ms": str(HOUR_MS)},
        TopicConfig(message_timestamp_before_max_ms=HOUR_MS, message_timestamp_after_max_ms=HOUR_MS),
    ),
    "written anew": ({"compression_type": "gzip"}, TopicConfig(compression_type="gzip")),
}


def random_records(dice: random.Random) -> bytes:
    """Up to five records of all kinds; in most cases some of their bytes are other ones."""
    records = bytearray()
    count = 5
    for offset in range(count):
        records += record(
            offset,
            dice.choice([0, 1, -1, 70, -70, 9000]),
            dice.choice([b"k", b"", b"key" * 30, b"k"]),
            dice.choice([b"v", None, b"", b"value" * 20]),
            dice.choice([(), (), [(b"h", b"x")], [(b"h", None), (b"", b"y" * 70)]]),
        )
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        change = dice.choice([0, 1, 2, 3, 10, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        records[dice.randrange(len(records))] = change
    return bytes(records)


def judged(batch: bytes, config: TopicConfig, now_ms: int) -> tuple[str, int]:
    """The error of the rules, and the greatest timestamp of what they let through."""
    try:
        prepared = prepare_client_batch(memoryview(bytearray(batch)), rules_of(config), now_ms)
    except KafkaError as error:
        return ErrorCode(error.code).name, -1
    return "NONE", prepared.max_timestamp


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("topic", CONFIGS)
def test_random_damage(
    raw: RawClient, broker: BrokerProcess, topic_name: str, topic: str, codec: Codec
) -> None:
    """The same error or the same greatest timestamp, batch for batch."""
    settings, config = CONFIGS[topic]
    create_topic(raw, topic_name, retention_ms="-1", **settings)
    dice = random.Random(f"{topic} {codec}")
    is_lenient = isinstance(broker, RealKafka) and codec != Codec.NONE and topic != "written anew"
    taken = 0
    for number in range(BATCHES):
        now_ms = time.time_ns() // 1_000_000
        batch = BadRecords(random_records(dice), count=5).batch(codec, now_ms)
        error, greatest = judged(batch, config, now_ms)
        answer = produce(raw, topic_name, batch)
        got = ErrorCode(answer.error_code).name
        if got == "UNKNOWN_SERVER_ERROR" and isinstance(broker, RealKafka):
            got = "INVALID_RECORD"
        if is_lenient and got == "NONE" and error == "INVALID_RECORD":
            continue  # Kafka does not follow the lengths of records that it does not write anew
        assert got == error, (number, batch.hex())
        if error == "NONE":
            (stored,) = split_batches(
                memoryview(bytearray(fetch_records(raw, topic_name, answer.base_offset)))
            )
            assert stored.max_timestamp == greatest, (number, batch.hex())
            taken += 1
    assert 0 < taken < BATCHES
