"""The runner of the matrix itself, with a driver that misbehaves as told, and without any broker."""

import dataclasses
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.matrix import case as cases_module
from compat_tests.matrix.__main__ import _chosen, _parser
from compat_tests.matrix.case import Case, Run, case, expect
from compat_tests.matrix.clients import Client, all_clients
from compat_tests.matrix.display import Display, side_by_side
from compat_tests.matrix.driver import DriverError, DriverGone, Unsupported
from compat_tests.matrix.judge import FAILED, KAFKA, NOT_OFFERED, OTTLA, PASSED, BothBrokers, judge_all
from compat_tests.matrix.known import Known
from compat_tests.matrix.page import page
from compat_tests.matrix.picture import picture
from compat_tests.matrix.results import keep, kept_rows, missing_row, row

DRIVER = """
import json, sys, time
for line in sys.stdin:
    call = json.loads(line)
    name = call.pop("call")
    if name == "die":
        sys.exit("the library gave up")
    elif name == "die_on_ottla" and sys.argv[1] == "ottla:1":
        sys.exit("the library gave up")
    elif name == "hang":
        time.sleep(600)
    elif name == "babble":
        print("no JSON", flush=True)
    else:
        print(json.dumps({
            "echo": {"ok": call},
            "address": {"ok": sys.argv[1]},
            "refuse": {"error": "FENCED_LEADER_EPOCH", "message": "older"},
            "lack": {"unsupported": "no such call"},
            "lack_on_kafka": {"ok": 1} if sys.argv[1] == "ottla:1" else {"unsupported": "no such call"},
            "version": {"ok": {"library": "fake", "version": "1.2"}},
        }.get(name, {"ok": name})), flush=True)
"""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client with the driver above."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    return Client("fake", "Fake", "Python", lambda: [sys.executable, str(script)])


@pytest.fixture
def both(client: Client) -> Iterator[BothBrokers]:
    """The client on two brokers that nobody connects to."""
    with BothBrokers(client, {OTTLA: "ottla:1", KAFKA: "kafka:1"}) as made:
        yield made


def made_case(body: Callable[[Run], object], title: str = "a case", **more: object) -> Case:
    return Case("produce", title, body, **more)  # type: ignore[arg-type]


def expecting(call: str, value: object) -> Case:
    """A case that expects this of that call."""

    def body(run: Run) -> object:
        answer = run.call(call)
        expect(answer, value)
        return answer

    return made_case(body)


def test_same_and_expected_passes(both: BothBrokers) -> None:
    """The only way to pass; the name given to a call loses its underscore."""

    def body(run: Run) -> object:
        answer = run.call("echo", as_="a", count=2)
        expect(answer, {"as": "a", "count": 2})
        return answer

    found = both.judge(made_case(body))
    assert (found.status, found.ottla.value) == (PASSED, {"as": "a", "count": 2})


def test_different_answers_fail(both: BothBrokers) -> None:
    """Each for itself is fine, but not alike: both are shown."""
    found = both.judge(made_case(lambda run: run.call("address")))
    assert (found.status, found.why) == (FAILED, "the brokers answer differently")
    shown = side_by_side("Fake", found, width=60)
    assert "FAILED Fake / produce: a case: the brokers answer differently" in shown
    assert [line.split() for line in shown.splitlines() if "ottla:1" in line] == [
        ['"ottla:1"', "|", '"kafka:1"']
    ]


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        ("kafka:1", "Ottla is not as expected"),
        ("ottla:1", "Kafka is not as expected: the case or the client is wrong"),
        ("else:1", "neither broker is as expected: the case or the client is wrong"),
    ],
)
def test_unmet_expectation_fails(both: BothBrokers, expected: str, why: str) -> None:
    """It says which broker is not as expected, Kafka too."""
    found = both.judge(expecting("address", expected))
    assert (found.status, found.why) == (FAILED, why)


def test_same_error_on_both_fails(both: BothBrokers) -> None:
    """An error that the case did not ask for is no answer, even if both brokers give it."""
    found = both.judge(expecting("refuse", None))
    assert found.status == FAILED
    assert found.ottla.wrong.startswith("FENCED_LEADER_EPOCH: older")


def test_expected_error_passes(both: BothBrokers) -> None:
    """`fails` takes the error by its name, and nothing else."""
    found = both.judge(made_case(lambda run: run.fails("FENCED_LEADER_EPOCH", "refuse")))
    assert found.status == PASSED
    assert both.judge(made_case(lambda run: run.fails("UNKNOWN", "refuse"))).status == FAILED
    assert both.judge(made_case(lambda run: run.fails("UNKNOWN", "echo"))).status == FAILED


def test_unsupported_is_not_offered(both: BothBrokers) -> None:
    """Neither passed nor failed; on one broker only it is a failure."""
    found = both.judge(expecting("lack", None))
    assert (found.status, found.why) == (NOT_OFFERED, "no such call")
    assert both.judge(expecting("lack_on_kafka", 1)).status == FAILED


def test_hanging_driver_fails_one_case(client: Client) -> None:
    """It is not waited for longer than a call may take."""
    hasty = dataclasses.replace(client, call_seconds=0.1)
    with BothBrokers(hasty, {OTTLA: "ottla:1", KAFKA: "kafka:1"}) as both:
        found = both.judge(expecting("hang", None))
    assert found.status == FAILED
    assert "no answer to hang" in found.ottla.wrong


@pytest.mark.parametrize(("call", "words"), [("die", "the library gave up"), ("babble", "no JSON")])
def test_lost_driver_fails_one_case(both: BothBrokers, call: str, words: str) -> None:
    """What it last wrote is shown, and the next case has a new driver."""
    found = both.judge(expecting(call, None))
    assert found.status == FAILED
    assert words in found.ottla.wrong
    assert both.judge(expecting("echo", {})).status == PASSED


def test_driver_lost_on_ottla_alone(both: BothBrokers) -> None:
    """The other broker's answer is there all the same."""
    found = both.judge(expecting("die_on_ottla", "die_on_ottla"))
    assert (found.why, found.kafka.value) == ("Ottla is not as expected", "die_on_ottla")


def test_mistake_in_a_case_fails_it(both: BothBrokers) -> None:
    """A case that raises ends itself, not the run."""
    found = both.judge(made_case(lambda run: run.call("echo")["nothing"]))
    assert (found.status, found.ottla.wrong) == (FAILED, "KeyError: 'nothing'")


def test_driver_calls(client: Client) -> None:
    """What a driver answers, as values and exceptions; none after it is lost."""
    with client.start("ottla:1") as driver:
        assert driver.call("address") == "ottla:1"
        with pytest.raises(DriverError, match="older") as error:
            driver.call("refuse")
        assert error.value.name == "FENCED_LEADER_EPOCH"
        with pytest.raises(Unsupported, match="no such call"):
            driver.call("lack")
        with pytest.raises(DriverGone, match="the library gave up"):
            driver.call("die")
        with pytest.raises(DriverGone, match="gone already"):
            driver.call("echo")


def test_open_members_are_closed(both: BothBrokers) -> None:
    """What a case joined and did not leave is left after it, also when the case fails."""
    told: list[str] = []

    def body(run: Run) -> object:
        start, run._start = run._start, lambda number: _Told(start(number), told)  # type: ignore[assignment, return-value]
        run.call("join", as_="left")
        run.call("leave", as_="left")
        run.call("join", as_="open")
        run.call("txn_init", as_="open")
        raise KeyError

    both.sides[OTTLA].answer(made_case(body), "x")
    assert told == ["join left", "leave left", "join open", "txn_init open", "txn_close open", "leave open"]


class _Told:
    """A driver that notes what it is told."""

    def __init__(self, driver: object, told: list[str]) -> None:
        self._driver, self._told = driver, told

    def call(self, call: str, **arguments: object) -> object:
        self._told.append(f"{call} {arguments['as']}")
        return None


def test_case_over_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function becomes a case for each value, named by it."""
    monkeypatch.setattr(cases_module, "CASES", [])

    @case("fetch", "{codec} is read", over={"codec": ["gzip", "lz4"], "acks": [1]}, since="4.0")
    def body(run: Run, codec: str, acks: int) -> object:
        return codec

    made = cases_module.CASES
    assert [each.id for each in made] == ["fetch: gzip is read (1)", "fetch: lz4 is read (1)"]
    assert made[1].arguments == {"codec": "lz4", "acks": 1}
    older = _parser().parse_args(["--reference", "3.9"])
    assert _chosen(made, older) == []
    assert _chosen(made, _parser().parse_args(["--case", "gzip"])) == made[:1]


def test_stopped_run_ends_after_a_case(both: BothBrokers) -> None:
    """Ctrl-C does not wait for all cases."""
    stopped = threading.Event()
    found = judge_all(both, [expecting("echo", {})] * 3, lambda _: stopped.set(), stopped)
    assert len(found) == 1


def test_progress_in_plain_lines(both: BothBrokers) -> None:
    """Without a terminal: a line at the begin, failures, and a line with the counts."""
    stream = io.StringIO()
    display = Display(stream)
    display.expect("fake", "Fake", 2)
    display.begins("fake")
    for each in (expecting("echo", {}), expecting("echo", 1)):
        display.judged("fake", both.judge(each))
    display.ends("fake")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Fake: 2 cases ..."
    assert "1 passed, 1 failed" in lines[-1]
    assert "\x1b" not in stream.getvalue()


class _Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(both: BothBrokers) -> None:
    """A line for each client is redrawn in place; failures stay above."""
    stream = _Terminal()
    display = Display(stream)
    display.expect("fake", "Fake", 2)
    display.expect("other", "Other", 1)
    display.lacks("other", "no Go")
    assert stream.getvalue() == f"{'Other':28} not run: no Go\n"
    display.begins("fake")
    display.judged("fake", both.judge(expecting("echo", {})))
    display.judged("fake", both.judge(expecting("echo", 1)))
    display.ends("fake")
    display.finish()
    display.say("one failed")
    last = stream.getvalue().rsplit("\x1b[J", 1)[1].splitlines()
    assert last[0].startswith(f"{'Fake':28} {'█' * 24}   2/2")
    assert last[1].startswith("2 of 2 cases in ")
    assert last[2:] == ["one failed"]
    assert stream.getvalue().count("FAILED Fake") == 1


def test_rows_of_other_clients_stay(both: BothBrokers, tmp_path: Path) -> None:
    """A run renews its own client's row and no other; the page names failures, reasons and what is missing."""
    path = tmp_path / "compatibility.json"
    names = [client.name for client in all_clients()][:3]
    some, other, missing = (_named(each) for each in names)
    verdicts = [both.judge(each) for each in (expecting("echo", {}), expecting("lack", 1))]
    failed = both.judge(made_case(lambda run: run.call("address"), "differs"))
    keep([row(other, "7.7", "4.3", "0.1", [*verdicts, failed], 1)], names, path)
    keep([row(some, "1.2", "4.3", "0.1", verdicts, 1)], names, path)
    kept = keep([missing_row(missing, "4.3", "0.1", "no Go", [failed.case])], names, path)
    assert kept == kept_rows(path)
    assert [each.client for each in kept] == names
    text = page(kept, known=[Known("produce: differs", "It is slower.", other.name)])
    assert f"| {some.title} (Python) | 1.2 | 1/1 | 1/1 |" in text
    assert f"| {other.title} (Python) | 7.7 | **1/2** | **1/2** |" in text
    assert f"produce: differs: It is slower. ({other.title})" in text
    assert f"{missing.title} was not run: no Go" in text
    assert "  - no such call: produce: a case" in text
    drawn = picture(kept, names)
    assert ">1/2<" in drawn
    assert ">not run<" in drawn
    assert json.loads(path.read_text())["rows"][0]["areas"]["produce"]["passed"] == 1


def _named(name: str) -> Client:
    return Client(name, name.upper(), "Python", list)


def test_clients_are_told_apart() -> None:
    """Every client of the table has a name of its own."""
    names = [client.name for client in all_clients()]
    assert len(names) == len(set(names))
    assert {"aiokafka", "confluent-kafka", "kafka-python", "kcat"} <= set(names)
