"""Share groups (KIP-932): members share the records of a partition and acknowledge each."""

from typing import Any

from compat_tests.matrix.calls import numbered, produce, share_from_the_beginning, text
from compat_tests.matrix.case import Run, case, expect

AREA = "share groups"


def start(run: Run, mode: str, count: int, *names: str) -> tuple[str, str]:
    """A topic with some records, and members of a group that begins with the first: topic and group."""
    topic, group = run.create(), run.group()
    share_from_the_beginning(run, group)
    for name in names:
        run.call("share_join", as_=name, group=group, topics=[topic], mode=mode)
    produce(run.stage, topic, numbered(count))
    return topic, group


def take(run: Run, name: str, count: int) -> list[dict[str, Any]]:
    """Poll until that many came, all accepted implicitly."""
    found: list[dict[str, Any]] = []

    def poll() -> int:
        found.extend(run.call("share_poll", as_=name, wait_ms=500))
        return len(found)

    run.until(poll, lambda seen: seen >= count)
    return found


def first_poll(run: Run, name: str) -> list[dict[str, Any]]:
    """The first poll that brings records."""
    return run.until(lambda: run.call("share_poll", as_=name, wait_ms=500), bool)


def acknowledge(run: Run, name: str, records: list[dict[str, Any]], *kinds: str) -> None:
    """Acknowledge each record in one of these ways."""
    given = [
        {"topic": each["topic"], "partition": each["partition"], "offset": each["offset"], "kind": kind}
        for each, kind in zip(records, kinds, strict=True)
    ]
    run.call("share_acknowledge", as_=name, records=given)


def told(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["offset"], text(each["value"]), each["deliveries"]) for each in records]


@case(AREA, "read, accepted by the next poll", since="4.2")
def implicit(run: Run) -> object:
    start(run, "implicit", 5, "first")
    found = told(take(run, "first", 5))
    expect(found, [(number, f"value-{number}", 1) for number in range(5)])
    return found


@case(AREA, "accepted records do not come again", since="4.2")
def accepted(run: Run) -> object:
    topic, group = start(run, "explicit", 3, "first")
    found = first_poll(run, "first")
    expect(len(found), 3)
    acknowledge(run, "first", found, *["accept"] * 3)
    run.call("share_leave", as_="first")
    run.call("share_join", as_="second", group=group, topics=[topic], mode="explicit")
    produce(run.stage, topic, numbered(1))
    new = told(first_poll(run, "second"))
    expect(new, [(3, "value-0", 1)])
    return new


@case(AREA, "released records come again, rejected ones do not", since="4.2")
def released(run: Run) -> object:
    start(run, "explicit", 4, "first")
    found = first_poll(run, "first")
    expect(told(found), [(number, f"value-{number}", 1) for number in range(4)])
    acknowledge(run, "first", found, "accept", "release", "reject", "release")
    again: list[dict[str, Any]] = []

    def poll() -> int:
        came = run.call("share_poll", as_="first", wait_ms=500)
        if came:
            acknowledge(run, "first", came, *["accept"] * len(came))
        again.extend(came)
        return len(again)

    run.until(poll, lambda seen: seen >= 2)
    expect(told(again), [(1, "value-1", 2), (3, "value-3", 2)])
    return told(again)


@case(AREA, "a record released often enough does not come again", since="4.2")
def given_up(run: Run) -> object:
    topic, _group = start(run, "explicit", 1, "first")
    seen = []
    for _ in range(5):
        found = first_poll(run, "first")
        seen += told(found)
        acknowledge(run, "first", found, *["release"] * len(found))
    produce(run.stage, topic, numbered(2)[1:])
    found = first_poll(run, "first")
    expect(seen, [(0, "value-0", number) for number in range(1, 6)])
    expect(told(found), [(1, "value-1", 1)])
    acknowledge(run, "first", found, "accept")
    return seen


@case(AREA, "what a member leaves unacknowledged another gets", since="4.2")
def left_behind(run: Run) -> object:
    topic, group = start(run, "explicit", 2, "first")
    expect(len(first_poll(run, "first")), 2)
    run.call("share_leave", as_="first")
    run.call("share_join", as_="second", group=group, topics=[topic], mode="explicit")
    found = first_poll(run, "second")
    expect([each["offset"] for each in found], [0, 1])
    acknowledge(run, "second", found, "accept", "accept")
    return [each["deliveries"] for each in found]


@case(AREA, "two members get different records", since="4.2")
def shared(run: Run) -> object:
    topic, _group = start(run, "implicit", 1, "first", "second")
    found: list[dict[str, Any]] = []
    sent = 1

    def poll() -> int:
        nonlocal sent
        for name in ("first", "second"):
            found.extend(run.call("share_poll", as_=name, wait_ms=200))
        if sent < 6:
            produce(run.stage, topic, numbered(1))
            sent += 1
        return len(found)

    run.until(poll, lambda seen: seen >= 6)
    offsets = sorted(each["offset"] for each in found)
    expect(offsets, list(range(6)))
    return offsets
