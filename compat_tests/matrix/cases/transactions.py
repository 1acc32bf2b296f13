"""Transactions; another client reads what they leave behind."""

from typing import Any

from compat_tests.matrix.calls import (
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
from compat_tests.matrix.members import read_until, settle, words

AREA = "transactions"
FENCED = ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "LOCAL"]


def init(run: Run, name: str, transactional_id: str | None = None, timeout_ms: int = 60_000) -> str:
    """Make a transactional producer; its id."""
    chosen = transactional_id or run.name("txn")
    run.call("txn_init", as_=name, id=chosen, timeout_ms=timeout_ms)
    return chosen


def send(run: Run, name: str, topic: str, *words: str, partition: int = 0) -> list[int]:
    found: list[int] = run.call(
        "txn_send", as_=name, topic=topic, partition=partition, values=[b64(each) for each in words]
    )
    return found


def transact(run: Run, name: str, topic: str, *words: str, end: str = "txn_commit") -> None:
    run.call("txn_begin", as_=name)
    send(run, name, topic, *words)
    run.call(end, as_=name)


def committed_values(run: Run, topic: str, partition: int = 0) -> list[str | None]:
    return values(fetch(run.stage, topic, partition, isolation="read_committed"))


def becomes(run: Run, topic: str, wanted: list[str], partition: int = 0) -> list[dict[str, Any]]:
    """What is committed is this, soon: Kafka answers the end of a transaction before its markers are in the log."""
    found = run.until(
        lambda: fetch(run.stage, topic, partition, isolation="read_committed"),
        lambda seen: values(seen) == wanted,
    )
    return list(found)


def committed_offset(run: Run, group: str, topic: str) -> int:
    return int(run.stage.call("committed", group=group, topic=topic, partitions=[0])["0"])


@case(AREA, "commit", quick=True)
def commits(run: Run) -> object:
    topic = run.create()
    init(run, "p")
    run.call("txn_begin", as_="p")
    offsets = send(run, "p", topic, "a", "b")
    expect(offsets, [0, 1])
    expect(committed_values(run, topic), [], "before the commit")
    run.call("txn_commit", as_="p")
    becomes(run, topic, ["a", "b"])
    return offsets


@case(AREA, "abort", quick=True)
def aborts(run: Run) -> object:
    topic = run.create()
    init(run, "p")
    transact(run, "p", topic, "a", "b", end="txn_abort")
    expect(committed_values(run, topic), [])
    seen = values(fetch(run.stage, topic))
    expect(seen, ["a", "b"], "read_uncommitted")
    return seen


@case(AREA, "one after the other")
def one_after_the_other(run: Run) -> object:
    topic = run.create()
    init(run, "p")
    for number in range(6):
        transact(run, "p", topic, f"v{number}", end="txn_abort" if number % 3 == 1 else "txn_commit")
    found = becomes(run, topic, ["v0", "v2", "v3", "v5"])
    return [each["offset"] for each in found]


@case(AREA, "over several partitions and topics")
def several_partitions(run: Run) -> object:
    topics = [run.create(partitions=2), run.create(partitions=2)]
    init(run, "p")
    for end in ("txn_abort", "txn_commit"):
        run.call("txn_begin", as_="p")
        for topic in topics:
            for partition in range(2):
                send(run, "p", topic, f"{end}-{partition}", partition=partition)
        run.call(end, as_="p")
    for topic in topics:
        for partition in range(2):
            becomes(run, topic, [f"txn_commit-{partition}"], partition)
    return None


@case(AREA, "an empty one ends with {end}", over={"end": ["txn_commit", "txn_abort"]})
def empty(run: Run, end: str) -> object:
    topic = run.create()
    init(run, "p")
    run.call("txn_begin", as_="p")
    run.call(end, as_="p")
    transact(run, "p", topic, "after")
    found = becomes(run, topic, ["after"])
    expect([each["offset"] for each in found], [0])
    return None


@case(AREA, "two producers at once in one partition")
def interleaved(run: Run) -> object:
    topic = run.create()
    init(run, "first")
    init(run, "second")
    for name in ("first", "second"):
        run.call("txn_begin", as_=name)
        send(run, name, topic, name)
    run.call("txn_commit", as_="second")
    expect(committed_values(run, topic), [], "while the first one is open")
    run.call("txn_abort", as_="first")
    becomes(run, topic, ["second"])
    return None


@case(AREA, "five hundred records")
def many(run: Run) -> object:
    topic = run.create()
    init(run, "p")
    transact(run, "p", topic, *[f"v{number}" for number in range(500)])
    becomes(run, topic, [f"v{number}" for number in range(500)])
    return None


@case(AREA, "offsets of a group without a member")
def offsets_alone(run: Run) -> object:
    topic, group = run.create(), run.group()
    init(run, "p")
    run.call("txn_begin", as_="p")
    send(run, "p", topic, "a")
    run.call("txn_offsets", as_="p", group=group, offsets={topic: {"0": 5}}, member=None)
    run.call("txn_commit", as_="p")
    run.until(lambda: committed_offset(run, group, topic), lambda seen: seen == 5)
    becomes(run, topic, ["a"])
    return None


@case(AREA, "offsets of a transaction that is aborted")
def offsets_aborted(run: Run) -> object:
    topic, group = run.create(), run.group()
    run.stage.call("alter_group_offsets", group=group, offsets={topic: {"0": 2}})
    init(run, "p")
    run.call("txn_begin", as_="p")
    send(run, "p", topic, "a")
    run.call("txn_offsets", as_="p", group=group, offsets={topic: {"0": 5}}, member=None)
    run.call("txn_abort", as_="p")
    expect(committed_offset(run, group, topic), 2)
    return None


@case(
    AREA,
    "read, write and commit in one, with a member ({protocol})",
    over={"protocol": ["classic", "consumer"]},
    since="4.0",
)
def read_process_write(run: Run, protocol: str) -> object:
    source, target, group = run.create(), run.create(), run.group()
    produce(run.stage, source, numbered(4))
    join(run, "reader", group, [source], isolation="read_committed", protocol=protocol)
    found = read_until(run, ["reader"], 4)
    init(run, "p")
    run.call("txn_begin", as_="p")
    send(run, "p", target, *[f"{text(each['value'])}!" for each in found])
    run.call("txn_offsets", as_="p", group=group, offsets={source: {"0": 4}}, member="reader")
    run.call("txn_commit", as_="p")
    run.call("leave", as_="reader")
    run.until(lambda: committed_offset(run, group, source), lambda seen: seen == 4)
    produce(run.stage, source, [record("later")])
    join(run, "again", group, [source], isolation="read_committed", protocol=protocol)
    expect(words(read_until(run, ["again"], 1)), ["later"])
    becomes(run, target, [f"value-{number}!" for number in range(4)])
    return None


@case(AREA, "a second producer with the same id fences the first")
def fences(run: Run) -> object:
    topic = run.create()
    chosen = init(run, "first")
    run.call("txn_begin", as_="first")
    send(run, "first", topic, "lost")
    init(run, "second", chosen)
    transact(run, "second", topic, "kept")
    answer = attempt(run, "txn_commit", as_="first")
    expect_one_of(answer, FENCED)
    becomes(run, topic, ["kept"])
    return answer


@case(AREA, "a fenced producer cannot send", since="4.0")
def fenced_send(run: Run) -> object:
    topic = run.create()
    chosen = init(run, "first")
    transact(run, "first", topic, "before")
    init(run, "second", chosen)
    answer = attempt(run, "txn_begin", as_="first")
    if answer is None:
        answer = attempt(run, "txn_send", as_="first", topic=topic, partition=0, values=[b64("lost")])
    expect_one_of(answer, FENCED)
    becomes(run, topic, ["before"])
    return answer


@case(AREA, "the same id again after it was closed")
def same_id_again(run: Run) -> object:
    topic = run.create()
    chosen = init(run, "first")
    transact(run, "first", topic, "a")
    run.call("txn_close", as_="first")
    init(run, "second", chosen)
    transact(run, "second", topic, "b")
    becomes(run, topic, ["a", "b"])
    return None


@case(AREA, "one that takes too long is aborted", since="4.0")
def times_out(run: Run) -> object:
    topic = run.create()
    init(run, "p", timeout_ms=3000)  # librdkafka has no longer for the record itself
    run.call("txn_begin", as_="p")
    send(run, "p", topic, "lost")
    produce(run.stage, topic, [record("after")])
    becomes(run, topic, ["after"])
    answer = attempt(run, "txn_commit", as_="p")
    expect_one_of(answer, [*FENCED, "INVALID_TXN_STATE"])
    return answer


@case(AREA, "a time-out above the broker's limit is refused")
def invalid_timeout(run: Run) -> object:
    answer = attempt(run, "txn_init", as_="p", id=run.name("txn"), timeout_ms=10_000_000)
    expect_one_of(answer, ["INVALID_TRANSACTION_TIMEOUT", "LOCAL"])
    return answer


@case(AREA, "a reader of a group sees what was committed only")
def group_reader(run: Run) -> object:
    topic, group = run.create(), run.group()
    join(run, "reader", group, [topic], isolation="read_committed")
    settle(run, ["reader"], {topic: 1})
    init(run, "p")
    transact(run, "p", topic, "lost", end="txn_abort")
    transact(run, "p", topic, "kept")
    found = read_until(run, ["reader"], 1)
    expect(words(found), ["kept"])
    return found[0]["offset"]
