"""The checker of histories: each planted fault is found by its rule, what is legal is not complained about."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat_tests.history.__main__ import main
from compat_tests.history.check import check, report
from compat_tests.history.operations import (
    Assign,
    BadHistory,
    Bounds,
    Commit,
    Committed,
    Init,
    Operation,
    Outcome,
    Poll,
    Send,
    Step,
    Subscribe,
    parse,
)
from compat_tests.history.recorder import Recorder
from compat_tests.history_model import honest_history

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def history(*operations: tuple[str, Outcome, Sequence[Step]]) -> list[Operation]:
    """Operations one after the other. `p:id` is a transaction of process p, `p!` a final one, `p?` an uncommitted
    read; an outcome of INFO never ends."""
    made = []
    for number, (who, outcome, steps) in enumerate(operations):
        process, _, transactional_id = who.partition(":")
        made.append(
            Operation(
                process=process.strip("!?"),
                number=number,
                steps=tuple(steps),
                outcome=outcome,
                invoked_at=number * 10,
                completed_at=None if outcome == INFO else number * 10 + 5,
                transactional_id=transactional_id or None,
                is_read_committed="?" not in process,
                is_final="!" in process,
            )
        )
    return made


def poll(key: str, *records: tuple[int, str]) -> Poll:
    return Poll(key, records)


Told = list[tuple[str, Outcome, Sequence[Step]]]

FAULTS: dict[str, tuple[str, Told]] = {
    "two values at one offset": (
        "inconsistent_offsets",
        [("a", OK, [Send("t-0", "x", 3)]), ("b", OK, [poll("t-0", (3, "y"))])],
    ),
    "a value twice in a partition": ("duplicate", [("b", OK, [poll("t-0", (0, "x"), (1, "x"))])]),
    "a value in two partitions": ("duplicate", [("b", OK, [poll("t-0", (0, "x")), poll("t-1", (0, "x"))])]),
    "a retried produce, read uncommitted": (
        "duplicate",
        [("a", OK, [Send("t-0", "x")]), ("b?", OK, [poll("t-0", (0, "x"), (1, "x"))])],
    ),
    "an acknowledged record that a reader passed over": (
        "lost_write",
        [("a", OK, [Send("t-0", "x", 0), Send("t-0", "y", 1)]), ("b", OK, [poll("t-0", (1, "y"))])],
    ),
    "an acknowledged record that is not there in the end": (
        "unseen",
        [("a", OK, [Send("t-0", "x", 0), Send("t-0", "y", 1)]), ("b!", OK, [poll("t-0", (0, "x"))])],
    ),
    "a record without an offset that is not there in the end": (
        "unseen",
        [("a", OK, [Send("t-0", "x")]), ("b!", OK, [poll("t-0")])],
    ),
    "records of an operation in another order": (
        "nonmonotonic_send",
        [("a", OK, [Send("t-0", "x", 5), Send("t-0", "y", 4)])],
    ),
    "records of two operations in another order": (
        "nonmonotonic_send",
        [("a", OK, [Send("t-0", "x", 5)]), ("a", OK, [Send("t-0", "y", 4)])],
    ),
    "a record of nobody": (
        "phantom_read",
        [("a", OK, [Send("t-0", "x", 0)]), ("b", OK, [poll("t-0", (0, "x"), (1, "y"))])],
    ),
    "a record at an offset that its writer was not told": (
        "phantom_read",
        [("a", OK, [Send("t-0", "x", 0)]), ("b", OK, [poll("t-0", (1, "x"))])],
    ),
    "an aborted record": (
        "aborted_read",
        [("a:id", FAIL, [Send("t-0", "x", 0)]), ("b", OK, [poll("t-0", (0, "x"))])],
    ),
    "an aborted record, although its second try was committed": (
        "aborted_read",
        [
            ("a:id", FAIL, [Send("t-0", "x", 0)]),
            ("a:id", OK, [Send("t-0", "x", 2)]),
            ("b", OK, [poll("t-0", (0, "x"))]),
        ],
    ),
    "a refused record, even read uncommitted": (
        "aborted_read",
        [("a", FAIL, [Send("t-0", "x")]), ("b?", OK, [poll("t-0", (0, "x"))])],
    ),
    "a transaction that reads its own record": (
        "precommitted_read",
        [("a:id", OK, [Send("t-0", "x", 0), poll("t-0", (0, "x"))])],
    ),
    "a record left out in one poll": (
        "poll_skip",
        [
            ("a", OK, [poll("t-0", (0, "x"), (1, "y"), (2, "z"))]),
            ("b", OK, [poll("t-0", (0, "x"), (2, "z"))]),
        ],
    ),
    "a record left out between polls": (
        "poll_skip",
        [
            ("a", OK, [poll("t-0", (0, "x"), (1, "y"), (2, "z"))]),
            ("b", OK, [poll("t-0", (0, "x"))]),
            ("b", OK, [poll("t-0", (2, "z"))]),
        ],
    ),
    "a record that comes again": (
        "nonmonotonic_poll",
        [("b", OK, [poll("t-0", (0, "x"), (1, "y"))]), ("b", OK, [poll("t-0", (0, "x"))])],
    ),
    "a record that comes again inside a poll of a group's member": (
        "nonmonotonic_poll",
        [("b", OK, [Subscribe(("t",)), poll("t-0", (0, "x"), (1, "y"), (0, "x"))])],
    ),
    "half of a committed transaction": (
        "torn_transaction",
        [
            ("a:id", OK, [Send("t-0", "x", 0), Send("t-1", "y", 0)]),
            ("b!", OK, [poll("t-0", (0, "x")), poll("t-1")]),
        ],
    ),
    "half of a transaction that nobody knows about": (
        "torn_transaction",
        [
            ("a:id", INFO, [Send("t-0", "x"), Send("t-1", "y")]),
            ("b!", OK, [poll("t-0", (0, "x")), poll("t-1")]),
        ],
    ),
    "a producer that goes on after it was fenced": (
        "zombie",
        [
            ("a", OK, [Init("id")]),
            ("b", OK, [Init("id")]),
            ("a:id", OK, [Send("t-0", "x", 0)]),
        ],
    ),
    "two transactions that read from each other": (
        "g1c",
        [
            ("a:1", OK, [Send("t-0", "x", 0), poll("t-1", (0, "y"))]),
            ("b:2", OK, [Send("t-1", "y", 0), poll("t-0", (0, "x"))]),
        ],
    ),
    "three transactions in a circle": (
        "g1c",
        [
            ("a:1", OK, [Send("t-0", "x", 0), poll("t-2", (0, "z"))]),
            ("b:2", OK, [Send("t-1", "y", 0), poll("t-0", (0, "x"))]),
            ("c:3", OK, [Send("t-2", "z", 0), poll("t-1", (0, "y"))]),
        ],
    ),
    "a committed offset that is gone": (
        "lost_commit",
        [("a", OK, [Commit("g", "t-0", 5)]), ("b", OK, [Committed("g", "t-0", None)])],
    ),
    "a committed offset that went back": (
        "commit_went_back",
        [
            ("a", OK, [Commit("g", "t-0", 5)]),
            ("a", OK, [Commit("g", "t-0", 9)]),
            ("b", OK, [Committed("g", "t-0", 5)]),
        ],
    ),
    "an offset of an aborted transaction": (
        "aborted_commit",
        [("a:id", FAIL, [Commit("g", "t-0", 5)]), ("b", OK, [Committed("g", "t-0", 5)])],
    ),
    "an offset without the records of its transaction": (
        "aborted_commit",
        [
            ("a:id", INFO, [Send("t-0", "x"), Commit("g", "s-0", 5)]),
            ("b!", OK, [poll("t-0")]),
            ("b", OK, [Committed("g", "s-0", 5)]),
        ],
    ),
    "records without the offset of their transaction": (
        "lost_commit",
        [
            ("a:id", INFO, [Send("t-0", "x"), Commit("g", "s-0", 5)]),
            ("b!", OK, [poll("t-0", (0, "x"))]),
            ("b", OK, [Committed("g", "s-0", None)]),
        ],
    ),
    "an offset that nobody committed": ("phantom_commit", [("b", OK, [Committed("g", "t-0", 0)])]),
    "a last stable offset that goes back": (
        "bounds_order",
        [("b", OK, [Bounds("t-0", 0, 5, 5)]), ("c", OK, [Bounds("t-0", 0, 4, 6)])],
    ),
    "a last stable offset behind the high watermark": ("bounds_order", [("b", OK, [Bounds("t-0", 0, 7, 5)])]),
    "a record behind the last stable offset": (
        "read_past_last_stable_offset",
        [("b", OK, [poll("t-0", (5, "x"))]), ("c", OK, [Bounds("t-0", 0, 5, 9)])],
    ),
    "an acknowledged record behind the high watermark": (
        "acknowledged_beyond_high_watermark",
        [("a", OK, [Send("t-0", "x", 5)]), ("c", OK, [Bounds("t-0", 0, 5, 5)])],
    ),
}

LEGAL: dict[str, Told] = {
    "gaps in offsets": [("b", OK, [poll("t-0", (0, "x"), (2, "y"), (9, "z"))])],
    "an aborted record, read uncommitted": [
        ("a:id", FAIL, [Send("t-0", "x", 0)]),
        ("a:id", OK, [Send("t-0", "x", 2)]),
        ("b?", OK, [poll("t-0", (0, "x"), (2, "x"))]),
        ("c!", OK, [poll("t-0", (2, "x"))]),
    ],
    "a transaction of nobody knows what that did not happen": [
        ("a:id", INFO, [Send("t-0", "x"), Send("t-1", "y"), Commit("g", "s-0", 4)]),
        ("b!", OK, [poll("t-0"), poll("t-1")]),
        ("b", OK, [Committed("g", "s-0", None)]),
    ],
    "a transaction of nobody knows what that happened": [
        ("a:id", INFO, [Send("t-0", "x"), Send("t-1", "y"), Commit("g", "s-0", 4)]),
        ("b!", OK, [poll("t-0", (0, "x")), poll("t-1", (3, "y"))]),
        ("b", OK, [Committed("g", "s-0", 4)]),
    ],
    "an acknowledged record that nobody has come to": [
        ("a", OK, [Send("t-0", "x", 0), Send("t-0", "y", 1)]),
        ("b", OK, [poll("t-0", (0, "x"))]),
    ],
    "records that were deleted since": [
        ("a", OK, [Send("t-0", "x", 0), Send("t-0", "y", 1)]),
        ("b!", OK, [poll("t-0", (1, "y"))]),
        ("b", OK, [Bounds("t-0", 1, 2, 2)]),
    ],
    "positions that start anew": [
        ("b", OK, [poll("t-0", (0, "x"), (1, "y"))]),
        ("b", OK, [Assign(("t-0",)), poll("t-0", (0, "x"))]),
    ],
    "positions that a group moves": [
        ("b", OK, [Subscribe(("t",)), poll("t-0", (0, "x"), (1, "y"), (2, "z"))]),
        ("b", OK, [poll("t-0", (0, "x"))]),
        ("b", OK, [poll("t-0", (2, "z"))]),
    ],
    "a group that was set back": [
        ("a", OK, [Commit("g", "t-0", 9)]),
        ("a", OK, [Commit("g", "t-0", 5)]),
        ("b", OK, [Committed("g", "t-0", 5)]),
    ],
    "a producer that takes its id back": [
        ("a", OK, [Init("id")]),
        ("b", OK, [Init("id")]),
        ("a", OK, [Init("id")]),
        ("a:id", OK, [Send("t-0", "x", 0)]),
        ("b:id", FAIL, [Send("t-0", "y", 1)]),
    ],
    "a transaction that reads what another wrote": [
        ("a:1", OK, [Send("t-0", "x", 0)]),
        ("b:2", OK, [Send("t-1", "y", 0), poll("t-0", (0, "x"))]),
        ("c:3", OK, [poll("t-0", (0, "x")), poll("t-1", (0, "y"))]),
    ],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault: str) -> None:
    """By the rule that is meant for it."""
    rule, operations = FAULTS[fault]
    assert rule in {anomaly.rule for anomaly in check(history(*operations))}


@pytest.mark.parametrize("case", LEGAL)
def test_legal_history_breaks_no_rule(case: str) -> None:
    """What Kafka allows is allowed here."""
    assert check(history(*LEGAL[case])) == []


def test_value_without_its_copy() -> None:
    """A copy from topic to topic that lost a value is found; one that is complete is not."""
    operations = history(
        ("a", OK, [Send("s-0", "x", 0), Send("s-0", "y", 1)]), ("b!", OK, [poll("t-0", (0, "x"))])
    )
    (found,) = check(operations, copies=[("s", "t")])
    assert (found.rule, found.subject) == ("missing_copy", "t 'y'")
    assert check(operations, copies=[("t", "s")], without=["missing_copy"])[0].subject == "s 'x'"
    assert check(operations) == []


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=50, deadline=None)
def test_honest_log_breaks_no_rule(seed: int) -> None:
    """Random producers, transactions, copiers and consumers on a model of a log that does everything right."""
    assert check(honest_history(random.Random(seed)), copies=[("in", "out")]) == []


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=50, deadline=None)
def test_record_taken_out_of_an_honest_history_is_missed(seed: int) -> None:
    """Whatever acknowledged record vanishes from all polls, some rule misses it."""
    chance = random.Random(seed)
    operations = honest_history(chance)
    places = [(send.key, send.value) for op in operations if op.outcome == OK for send in op.sends()]
    key, gone = chance.choice(places)

    def without(step: Step) -> Step:
        if isinstance(step, Poll) and step.key == key:
            return Poll(key, tuple(each for each in step.records if each[1] != gone))
        return step

    spoilt = [replace(each, steps=tuple(map(without, each.steps))) for each in operations]
    assert check(spoilt) != []


def test_recorded_history_is_read_again(tmp_path: Path) -> None:
    """What a recorder writes is what was told it, through its file as well as from memory."""
    path = tmp_path / "history"
    recorder = Recorder(path)
    happening = recorder.begin("a", Send("t-0", "x"), transactional_id="id")
    recorder.begin("c", Send("t-0", "y"))
    happening.end(OK, Send("t-0", "x", 4), Commit("g", "s-0", 2))
    recorder.happened("b", poll("t-0", (4, "x")), final=True, isolation="read_uncommitted")
    first, second, third = recorder.operations()
    assert first.steps == (Send("t-0", "x", 4), Commit("g", "s-0", 2))
    assert (first.transactional_id, first.outcome, second.outcome) == ("id", OK, INFO)
    assert (third.is_final, third.is_read_committed) == (True, False)
    assert first.precedes(third)
    assert not first.precedes(second)
    assert parse(path.read_text().splitlines()) == recorder.operations()
    recorder.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == path.read_text()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0 and the figures for what is right, 1 and the evidence for what is not, 2 for what is no history."""
    path = tmp_path / "history"
    recorder = Recorder(path)
    recorder.happened("a", Send("t-0", "x", 0))
    assert main([str(path)]) == 0
    recorder.happened("b", poll("t-0", (0, "x"), (1, "x")))
    assert main([str(path)]) == 1
    assert "duplicate: t 'x': stands at [('t-0', 0), ('t-0', 1)]" in capsys.readouterr().out
    assert main([str(path), "--without", "duplicate", "--without", "phantom_read", "--copies", "t=t"]) == 0
    assert "2 records read in 1 partitions" in capsys.readouterr().out
    path.write_text(json.dumps({"process": "a", "op": 1, "type": "ok", "time": 1}))
    assert main([str(path)]) == 2


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"type": "invoke"}', '{"process": "a", "op": 0, "type": "invoke", "steps": [["x"]]}']
)
def test_bad_line_is_refused(line: str) -> None:
    """A history that is not one is an error, not an empty history."""
    with pytest.raises(BadHistory):
        parse([line])


def test_report_tells_how_far_readers_were_behind() -> None:
    """From the acknowledgement to the first read."""
    operations = history(("a", OK, [Send("t-0", "x", 0)]), ("b", OK, [poll("t-0", (0, "x"))]))
    assert report(operations)[-1].startswith("from acknowledgement to first read: median 0.0 ms")
