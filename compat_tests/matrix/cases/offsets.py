"""Offsets of partitions, by place and by time."""

from compat_tests.matrix.calls import LOCAL, attempt, expect_one_of, numbered, produce, record
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.cases.fetch import transactions

AREA = "offsets and timestamps"
TIME = 1_600_000_000_000


def at(run: Run, topic: str, where: str | int, partition: int = 0) -> list[int]:
    """Offset and timestamp; -1 where there is none or the library does not tell it."""
    found = run.call("list_offsets", topic=topic, partition=partition, at=where)
    return [found["offset"], found["timestamp"]]


def timed(run: Run) -> str:
    """A topic with three records, ten seconds apart, the last but one the latest."""
    topic = run.create()
    times = [TIME, TIME + 20_000, TIME + 10_000]
    for number, each in enumerate(times):
        produce(run.stage, topic, [record(f"value-{number}", timestamp=each)])
    return topic


@case(AREA, "earliest and latest", quick=True)
def ends(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(7))
    seen = [at(run, topic, "earliest")[0], at(run, topic, "latest")[0]]
    expect(seen, [0, 7])
    return seen


@case(AREA, "earliest and latest of an empty partition")
def ends_of_empty(run: Run) -> object:
    topic = run.create(partitions=2)
    produce(run.stage, topic, numbered(2))
    seen = [at(run, topic, where, 1)[0] for where in ("earliest", "latest")]
    expect(seen, [0, 0])
    return seen


TIMES = {
    "before the first": (TIME - 1, [0, TIME]),
    "of the first": (TIME, [0, TIME]),
    "between": (TIME + 1, [1, TIME + 20_000]),
    "of the latest": (TIME + 20_000, [1, TIME + 20_000]),
}


@case(AREA, "by a time {kind}", over={"kind": list(TIMES)})
def by_time(run: Run, kind: str) -> object:
    topic = timed(run)
    when, wanted = TIMES[kind]
    offset, timestamp = at(run, topic, when)
    expect(offset, wanted[0])
    expect_one_of(timestamp, [wanted[1], -1])
    return [offset, timestamp]


@case(AREA, "by a time after the last")
def after_last(run: Run) -> object:
    topic = timed(run)
    seen = at(run, topic, TIME + 20_001)
    # Some libraries answer with the end of the partition where the broker says that there is none.
    expect_one_of(seen[0], [-1, 3])
    return seen


@case(AREA, "by a time in an empty partition")
def by_time_in_empty(run: Run) -> object:
    seen = at(run, run.create(), TIME)
    expect_one_of(seen[0], [-1, 0])
    return seen


@case(AREA, "the record with the largest timestamp")
def max_timestamp(run: Run) -> object:
    seen = at(run, timed(run), "max_timestamp")
    expect(seen, [1, TIME + 20_000])
    return seen


@case(AREA, "the largest timestamp of an empty partition")
def max_timestamp_of_empty(run: Run) -> object:
    seen = at(run, run.create(), "max_timestamp")
    expect(seen, [-1, -1])
    return seen


@case(AREA, "after records were deleted", quick=True)
def after_delete(run: Run) -> object:
    topic = timed(run)
    run.stage.call("delete_records", topic=topic, before={"0": 1})
    seen = [at(run, topic, "earliest")[0], at(run, topic, "latest")[0], at(run, topic, TIME)[0]]
    expect(seen, [1, 3, 1])
    return seen


@case(AREA, "by time within a batch", over={"codec": ["none", "zstd"]})
def within_batch(run: Run, codec: str) -> object:
    topic = run.create()
    produce(run.stage, topic, [record(b"v", timestamp=TIME + number) for number in range(50)], codec=codec)
    seen = [at(run, topic, TIME + number)[0] for number in (0, 17, 49)]
    expect(seen, [0, 17, 49])
    return seen


@case(AREA, "latest counts markers of transactions")
def after_markers(run: Run) -> object:
    topic = run.create()
    transactions(run, topic)
    seen = [at(run, topic, "earliest")[0], at(run, topic, "latest")[0]]
    expect(seen, [0, 10])
    return seen


@case(AREA, "of an unknown topic")
def unknown_topic(run: Run) -> object:
    topic = run.topic()
    answer = attempt(run, "list_offsets", topic=topic, partition=0, at="latest")
    expect_one_of(answer, ["UNKNOWN_TOPIC_OR_PARTITION", LOCAL])
    expect(topic in run.stage.call("metadata", topics=None)["topics"], False, "the topic was created")
    return answer


@case(AREA, "of a partition that is not there")
def unknown_partition(run: Run) -> object:
    answer = attempt(run, "list_offsets", topic=run.create(), partition=5, at="latest")
    expect_one_of(answer, ["UNKNOWN_TOPIC_OR_PARTITION", LOCAL])
    return answer


@case(AREA, "the end of a leader epoch")
def leader_epoch_end(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(4))
    found = run.call("leader_epoch_end", topic=topic, partition=0, epoch=0)
    expect(found, 4)
    return found
