"""Records are read that another client wrote."""

from compat_tests.matrix.calls import (
    CODECS,
    attempt,
    b64,
    expect_one_of,
    fetch,
    join,
    numbered,
    produce,
    record,
    text,
    values,
)
from compat_tests.matrix.case import Run, case, expect

AREA = "fetch"


@case(AREA, "from an offset to the end", quick=True)
def to_the_end(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(10))
    found = fetch(run, topic, offset=4)
    expect(values(found), [f"value-{number}" for number in range(4, 10)])
    return [each["offset"] for each in found]


@case(AREA, "as many as are asked for")
def some(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(10))
    found = fetch(run, topic, offset=2, count=3)
    expect([each["offset"] for each in found], [2, 3, 4])
    return values(found)


@case(AREA, "an empty partition, and the end of one")
def empty(run: Run) -> object:
    topic = run.create(partitions=2)
    produce(run.stage, topic, numbered(3))
    seen = [fetch(run, topic, partition=1), fetch(run, topic, offset=3)]
    expect(seen, [[], []])
    return seen


@case(AREA, "{codec} of another client", over={"codec": CODECS})
def codecs(run: Run, codec: str) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(100, size=500), codec=codec)
    found = fetch(run, topic)
    expect(values(found), [f"value-{number}".ljust(500, ".") for number in range(100)])
    return [each["offset"] for each in found]


@case(AREA, "batches of all codecs in one partition, from the middle of one", quick=True)
def mixed_codecs(run: Run) -> object:
    topic = run.create()
    for codec in CODECS:
        produce(run.stage, topic, numbered(7, size=100), codec=codec)
    found = fetch(run, topic, offset=10)
    expect([each["offset"] for each in found], list(range(10, 35)))
    return [text(each["value"]).rstrip(".") for each in found]  # type: ignore[union-attr]


@case(AREA, "over several segments")
def segments(run: Run) -> object:
    topic = run.create(configs={"segment.bytes": "1048576"})
    for number in range(4):
        produce(run.stage, topic, [record(bytes([number]) * 400_000)] * 2)
    found = fetch(run, topic)
    expect([each["value"] for each in found], [b64(bytes([number // 2]) * 400_000) for number in range(8)])
    return [each["offset"] for each in found]


@case(AREA, "a record of 2 MB")
def large(run: Run) -> object:
    topic = run.create(configs={"max.message.bytes": "3000000"})
    value = b"x" * 2_000_000
    produce(run.stage, topic, [record(value)], max_request_bytes=4_000_000)
    [found] = fetch(run, topic)
    expect(found["value"], b64(value))
    return found["offset"]


@case(AREA, "keys, headers and timestamps")
def whole_records(run: Run) -> object:
    topic = run.create()
    sent = [
        record(b"v", b"k", headers=[("a", b"1"), ("a", None)], timestamp=1_600_000_000_000),
        record(None, b"", timestamp=1_600_000_000_001),
        record(b"", None, timestamp=1_600_000_000_002),
    ]
    produce(run.stage, topic, sent)
    found = fetch(run, topic)
    expect(
        found,
        [{**{k: v for k, v in each.items() if k != "partition"}, "offset": n} for n, each in enumerate(sent)],
    )
    return found


@case(
    AREA, "an offset {kind} is out of range", over={"kind": ["after the end", "before the start"]}, quick=True
)
def out_of_range(run: Run, kind: str) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(5))
    run.stage.call("delete_records", topic=topic, before={"0": 2})
    offset = 99 if kind == "after the end" else 1
    answer = attempt(
        run, "fetch", topic=topic, partition=0, offset=offset, count=1, isolation="read_uncommitted"
    )
    expect_one_of(answer, ["OFFSET_OUT_OF_RANGE"])
    return answer


@case(AREA, "an unknown topic")
def unknown_topic(run: Run) -> object:
    topic = run.topic()
    answer = attempt(run, "fetch", topic=topic, partition=0, offset=0, count=1, isolation="read_uncommitted")
    expect_one_of(answer, ["UNKNOWN_TOPIC_OR_PARTITION", "LOCAL"])
    expect(topic in run.stage.call("metadata", topics=None)["topics"], False, "the topic was created")
    return answer


def transactions(run: Run, topic: str) -> None:
    """Offsets 0-1 committed, marker 2, 3-4 aborted, marker 5, 6 plain, 7-8 committed, marker 9."""
    stage = run.stage
    name = run.name("txn")
    stage.call("txn_init", as_=name, id=name, timeout_ms=60_000)
    for number, end in enumerate(("txn_commit", "txn_abort", "txn_commit")):
        if number == 2:
            produce(stage, topic, [record("plain")])
        stage.call("txn_begin", as_=name)
        sent = [b64(f"{end}-{number}-{each}") for each in range(2)]
        stage.call("txn_send", as_=name, topic=topic, partition=0, values=sent)
        stage.call(end, as_=name)
        wait_for_end(run, topic, (3, 6, 10)[number])
    stage.call("txn_close", as_=name)


def wait_for_end(run: Run, topic: str, offset: int) -> None:
    """Kafka answers the end of a transaction before its marker is in the log."""
    run.until(
        lambda: run.stage.call("list_offsets", topic=topic, partition=0, at="latest")["offset"],
        lambda seen: seen == offset,
    )


@case(
    AREA,
    "{isolation} over aborted records and markers",
    over={"isolation": ["read_uncommitted", "read_committed"]},
    quick=True,
)
def isolation_levels(run: Run, isolation: str) -> object:
    topic = run.create()
    transactions(run, topic)
    found = [[each["offset"], text(each["value"])] for each in fetch(run, topic, isolation=isolation)]
    aborted = [[3, "txn_abort-1-0"], [4, "txn_abort-1-1"]]
    wanted = [
        [0, "txn_commit-0-0"],
        [1, "txn_commit-0-1"],
        *aborted,
        [6, "plain"],
        [7, "txn_commit-2-0"],
        [8, "txn_commit-2-1"],
    ]
    expect(found, [each for each in wanted if isolation == "read_uncommitted" or each not in aborted])
    return found


@case(
    AREA,
    "{isolation} up to a transaction that is open",
    over={"isolation": ["read_uncommitted", "read_committed"]},
)
def open_transaction(run: Run, isolation: str) -> object:
    topic = run.create()
    name = run.name("txn")
    produce(run.stage, topic, [record("before")])
    run.stage.call("txn_init", as_=name, id=name, timeout_ms=60_000)
    run.stage.call("txn_begin", as_=name)
    run.stage.call("txn_send", as_=name, topic=topic, partition=0, values=[b64("open")])
    produce(run.stage, topic, [record("after")])
    found = values(fetch(run, topic, isolation=isolation))
    run.stage.call("txn_abort", as_=name)
    run.stage.call("txn_close", as_=name)
    expect(found, ["before"] if isolation == "read_committed" else ["before", "open", "after"])
    return found


@case(AREA, "records that come while it waits")
def wakes_up(run: Run) -> object:
    topic, group = run.create(), run.group()
    join(run, "reader", group, [topic])
    run.until(
        lambda: run.call("poll", as_="reader", wait_ms=100), lambda seen: seen["assignment"] == {topic: [0]}
    )
    seen = []
    for number in range(3):
        produce(run.stage, topic, [record(f"late-{number}")])
        seen += run.until(lambda: run.call("poll", as_="reader", wait_ms=5000)["records"], bool)
    expect(values(seen), ["late-0", "late-1", "late-2"])
    return [each["offset"] for each in seen]


@case(
    AREA, "what the broker has compressed again ({codec})", over={"codec": ["gzip", "snappy", "lz4", "zstd"]}
)
def broker_codec(run: Run, codec: str) -> object:
    topic = run.create(configs={"compression.type": codec})
    produce(run.stage, topic, numbered(30, size=200))
    found = fetch(run, topic)
    expect(values(found), [f"value-{number}".ljust(200, ".") for number in range(30)])
    return None


@case(AREA, "what the cleaner of an old record leaves: gaps are read over")
def gaps(run: Run) -> object:
    topic = run.create()
    transactions(run, topic)  # control records are gaps to a reader
    found = fetch(run, topic, offset=2, count=3)
    expect([each["offset"] for each in found], [3, 4, 6])
    return values(found)
