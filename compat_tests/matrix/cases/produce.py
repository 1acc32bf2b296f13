"""Records are written; another client reads what arrived."""

from typing import Any

from compat_tests.matrix.calls import (
    CODECS,
    LOCAL,
    b64,
    expect_one_of,
    fetch,
    numbered,
    produce,
    record,
    values,
)
from compat_tests.matrix.case import Run, case, expect

AREA = "produce"
# As large as a batch of one record may be by default, less what record, batch and headers take at most.
CLOSE_TO_LIMIT = 1_048_588 - 120


def acknowledged(count: int, *, first: int = 0, partition: int = 0) -> list[dict[str, int]]:
    return [{"partition": partition, "offset": offset} for offset in range(first, first + count)]


def stored(run: Run, topic: str, partition: int = 0, count: int | None = None) -> list[dict[str, Any]]:
    return fetch(run.stage, topic, partition, count=count)


@case(AREA, "acks {acks}", over={"acks": [1, -1]}, quick=True)
def acks_waited_for(run: Run, acks: int) -> object:
    topic = run.create()
    expect(produce(run, topic, numbered(3), acks=acks), acknowledged(3))
    return values(stored(run, topic))


@case(AREA, "acks 0")
def acks_none(run: Run) -> object:
    topic = run.create()
    answers = produce(run, topic, numbered(3), acks=0)
    expect([each.get("error") for each in answers], [None] * 3)
    found = values(stored(run, topic, count=3))  # they arrive when they do
    expect(found, ["value-0", "value-1", "value-2"])
    return found


@case(AREA, "{codec} with acks {acks}", over={"codec": CODECS, "acks": [1, -1]})
def codecs(run: Run, codec: str, acks: int) -> object:
    topic = run.create()
    expect(produce(run, topic, numbered(50, size=200), codec=codec, acks=acks), acknowledged(50))
    found = stored(run, topic)
    expect(values(found), [f"value-{number}".ljust(200, ".") for number in range(50)])
    return [each["offset"] for each in found]


SIZES = {"1 byte": 1, "100 KB": 100_000, "1 MB, close below the limit": CLOSE_TO_LIMIT}


@case(AREA, "a value of {size}", over={"size": list(SIZES)})
def sizes(run: Run, size: str) -> object:
    topic = run.create()
    value = b"x" * SIZES[size]
    expect(produce(run, topic, [record(value)], max_request_bytes=2_000_000), acknowledged(1))
    [found] = stored(run, topic)
    expect(found["value"], b64(value))
    return found["offset"]


@case(AREA, "more than the topic's limit is refused", quick=True)
def over_topic_limit(run: Run) -> object:
    topic = run.create(configs={"max.message.bytes": "2000"})
    answers = produce(run, topic, [record(b"x" * 5000)])
    expect(answers, [{"error": "MESSAGE_TOO_LARGE"}])
    expect(produce(run, topic, [record(b"x" * 500)]), acknowledged(1))
    return answers


@case(AREA, "more than the broker's limit is refused")
def over_broker_limit(run: Run) -> object:
    topic = run.create()
    answers = produce(run, topic, [record(b"x" * 1_100_000)], max_request_bytes=3_000_000)
    expect(answers, [{"error": "MESSAGE_TOO_LARGE"}])
    return answers


@case(AREA, "more than the library's limit is refused")
def over_library_limit(run: Run) -> object:
    topic = run.create()
    answers = produce(run, topic, [record(b"x" * 200_000)], max_request_bytes=100_000)
    expect_one_of(answers[0].get("error"), [LOCAL, "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"])
    expect(stored(run, topic), [])
    return answers


@case(AREA, "a topic with a larger limit takes more")
def larger_limit(run: Run) -> object:
    topic = run.create(configs={"max.message.bytes": "3000000"})
    value = b"x" * 2_000_000
    expect(produce(run, topic, [record(value)], max_request_bytes=4_000_000), acknowledged(1))
    [found] = stored(run, topic)
    expect(found["value"], b64(value))
    return None


@case(AREA, "empty and null values and keys", quick=True)
def nothing_in_it(run: Run) -> object:
    topic = run.create()
    sent = [(b"", b""), (None, b"key"), (b"value", None), (b"", None)]
    expect(produce(run, topic, [record(value, key) for value, key in sent]), acknowledged(4))
    found = [(each["value"], each["key"]) for each in stored(run, topic)]
    expect(found, [(b64(value), b64(key)) for value, key in sent])
    return found


@case(AREA, "a record without a key and a value")
def nothing_at_all(run: Run) -> object:
    topic = run.create()
    expect(produce(run, topic, [record(None, None)]), acknowledged(1))
    [found] = stored(run, topic)
    expect((found["value"], found["key"]), (None, None))
    return None


@case(AREA, "values and keys of any bytes")
def any_bytes(run: Run) -> object:
    topic = run.create()
    every = bytes(range(256))
    expect(produce(run, topic, [record(every, every[::-1])]), acknowledged(1))
    [found] = stored(run, topic)
    expect((found["value"], found["key"]), (b64(every), b64(every[::-1])))
    return None


@case(AREA, "headers", quick=True)
def headers(run: Run) -> object:
    topic = run.create()
    given = [("a", b"1"), ("b", b""), ("long", b"x" * 300)]
    expect(produce(run, topic, [record(b"v", headers=given)]), acknowledged(1))
    [found] = stored(run, topic)
    expect(found["headers"], [[name, b64(data)] for name, data in given])
    return found["headers"]


@case(AREA, "headers with one name twice, in their order")
def repeated_headers(run: Run) -> object:
    topic = run.create()
    given = [("a", b"1"), ("b", b"2"), ("a", b"3")]
    expect(produce(run, topic, [record(b"v", headers=given)]), acknowledged(1))
    [found] = stored(run, topic)
    expect(found["headers"], [[name, b64(data)] for name, data in given])
    return found["headers"]


@case(AREA, "headers that are null")
def null_headers(run: Run) -> object:
    topic = run.create()
    expect(produce(run, topic, [record(b"v", headers=[("a", None), ("b", b"2")])]), acknowledged(1))
    [found] = stored(run, topic)
    expect(found["headers"], [["a", None], ["b", b64(b"2")]])
    return found["headers"]


@case(AREA, "timestamps that are given", quick=True)
def timestamps(run: Run) -> object:
    topic = run.create()
    times = [1_600_000_000_000, 1_600_000_005_000, 1_599_999_999_999]
    expect(produce(run, topic, [record(b"v", timestamp=each) for each in times]), acknowledged(3))
    found = [each["timestamp"] for each in stored(run, topic)]
    expect(found, times)
    return found


@case(AREA, "the broker's time where the topic says so")
def log_append_time(run: Run) -> object:
    topic = run.create(configs={"message.timestamp.type": "LogAppendTime"})
    old = 1_600_000_000_000
    expect(produce(run, topic, [record(b"v", timestamp=old) for _ in range(3)]), acknowledged(3))
    found = [each["timestamp"] for each in stored(run, topic)]
    expect([each > old for each in found], [True] * 3)
    return len(found)


@case(AREA, "a timestamp too far ahead is refused")
def far_ahead(run: Run) -> object:
    topic = run.create(configs={"message.timestamp.after.max.ms": "3600000"})
    answers = produce(run, topic, [record(b"v", timestamp=4_000_000_000_000)])
    expect(answers, [{"error": "INVALID_TIMESTAMP"}])
    return answers


@case(AREA, "idempotent, {codec}", over={"codec": ["none", "zstd"]})
def idempotent(run: Run, codec: str) -> object:
    topic = run.create(partitions=2)
    records = [each for number in range(2) for each in numbered(20, partition=number)]
    answers = produce(run, topic, records, idempotent=True, codec=codec)
    expect(answers, acknowledged(20) + acknowledged(20, partition=1))
    found = [values(stored(run, topic, number)) for number in range(2)]
    expect(found, [[f"value-{number}" for number in range(20)]] * 2)
    return found


@case(AREA, "two idempotent producers, one after the other")
def idempotent_again(run: Run) -> object:
    topic = run.create()
    expect(produce(run, topic, numbered(3), idempotent=True), acknowledged(3))
    expect(produce(run, topic, numbered(3), idempotent=True), acknowledged(3, first=3))
    return None


@case(AREA, "to a partition that is not there")
def unknown_partition(run: Run) -> object:
    topic = run.create(partitions=2)
    [answer] = produce(run, topic, [record(b"v", partition=7)])
    # Libraries look into the metadata first.
    expect_one_of(answer.get("error"), [LOCAL, "UNKNOWN_TOPIC_OR_PARTITION"])
    return answer


@case(AREA, "to a topic that is made by it")
def auto_created(run: Run) -> object:
    topic = run.topic()
    expect(produce(run, topic, [record(b"v", partition=None)]), acknowledged(1))
    found = values(stored(run, topic))
    expect(found, ["v"])
    return found


@case(AREA, "without a key to a compacted topic is refused")
def compacted(run: Run) -> object:
    topic = run.create(configs={"cleanup.policy": "compact"})
    answers = produce(run, topic, [record(b"v")])
    expect(answers, [{"error": "INVALID_RECORD"}])
    expect(produce(run, topic, [record(b"v", b"k"), record(None, b"k")]), acknowledged(2))
    return answers


@case(AREA, "a thousand records over four partitions")
def many(run: Run) -> object:
    topic = run.create(partitions=4)
    records = [record(f"value-{number}", partition=number % 4) for number in range(1000)]
    answers = produce(run, topic, records, codec="lz4")
    expect(answers, [{"partition": number % 4, "offset": number // 4} for number in range(1000)])
    found = [values(stored(run, topic, partition)) for partition in range(4)]
    expect(found, [[f"value-{number}" for number in range(partition, 1000, 4)] for partition in range(4)])
    return None


@case(AREA, "the same key goes to the same partition", quick=True)
def partitioner(run: Run) -> object:
    topic = run.create(partitions=5)
    records = [record(b"v", f"key-{number % 8}", partition=None) for number in range(24)]
    answers = produce(run, topic, records)
    chosen = [each["partition"] for each in answers]
    expect(chosen[8:16], chosen[:8])
    expect(chosen[16:], chosen[:8])
    return chosen


@case(AREA, "a record without a key goes to some partition")
def no_key(run: Run) -> object:
    topic = run.create(partitions=3)
    answers = produce(run, topic, [record(b"v", partition=None) for _ in range(6)])
    expect([each.get("error") for each in answers], [None] * 6)
    expect(sum(len(stored(run, topic, number)) for number in range(3)), 6)
    return None


@case(AREA, "a topic that recompresses to {codec}", over={"codec": ["uncompressed", "gzip", "zstd"]})
def recompressed(run: Run, codec: str) -> object:
    topic = run.create(configs={"compression.type": codec})
    expect(produce(run, topic, numbered(20, size=100), codec="lz4"), acknowledged(20))
    found = values(stored(run, topic))
    expect(found, [f"value-{number}".ljust(100, ".") for number in range(20)])
    return None
