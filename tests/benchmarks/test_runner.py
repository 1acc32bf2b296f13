"""Running parts in turns: who comes when, and what is left of a part that fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Self

import pytest

from benchmarks import part_pass, results, runner
from benchmarks.bench import KAFKA, OTTLA, Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.progress import Progress
from benchmarks.report import Section
from benchmarks.results import load
from benchmarks.runner import Runner

SPEED, OTHER = Measure("speed", "MB/s", True), Measure("other", "MB/s", True)


class StandIn:
    """A broker that does nothing but live until it is told to die."""

    pid = os.getpid()

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: StandIn | None = self
        self.is_stopped = False

    def prepare(self) -> None:
        pass

    def poll(self) -> None:
        return None

    def send_signal(self, number: signal.Signals) -> None:
        self.is_stopped = number == signal.SIGSTOP

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process = None


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the brokers in the order of their starts, which are stand-ins."""
    names: list[str] = []

    def make(name: str, *_: object) -> StandIn:
        names.append(name)
        return StandIn(name)

    monkeypatch.setattr(runner, "make_broker", make)
    monkeypatch.setattr(Runner, "_warm_up", lambda *_: None)
    monkeypatch.setattr(runner, "held_memory", nullcontext)
    monkeypatch.setattr(part_pass, "wait_for_rest", lambda _: True)
    monkeypatch.setattr(results, "FULL_DIRECTORY", tmp_path / "full")
    monkeypatch.setattr(results, "QUICK_DIRECTORY", tmp_path / "quick")
    return names


def part(name: str, run: object, **more: object) -> Part:
    return Part(name, Section(name, ""), (SPEED, OTHER), run, **more)  # type: ignore[arg-type]


def good(bench: Bench) -> None:
    bench.note(SPEED, 2.0 if bench.broker.name == OTTLA else 1.0)


def bad(bench: Bench) -> None:
    bench.note(SPEED, 1.0)
    raise OSError("out of luck")


def test_brokers_take_turns(started: list[str]) -> None:
    """Parts that share a broker share its process; each other one gets its own, on both brokers. Who is first is by
    turns, too."""
    Runner([part("a", good), part("b", good), part("c", good, shares_broker=False)], quick=False).run()
    assert started == [OTTLA, KAFKA] * 2 + [KAFKA, OTTLA] * 2 + [OTTLA, KAFKA] * 2
    found = load("a", quick=False)
    assert found is not None
    pairs = found.entries("speed", (OTTLA, KAFKA))
    assert [(ours.value, theirs.value) for ours, theirs in pairs] == [(2, 1)] * 3


def turns(bench: Bench, order: list[str], count: int) -> Iterator[None]:
    """Note who has a turn."""
    for _ in range(count):
        order.append(bench.broker.name)
        yield
    good(bench)


def test_brokers_take_turns_within_a_part(started: list[str]) -> None:
    """Where a part yields, the other broker has its turn; each runs once for all parts that share it."""
    order: list[str] = []
    Runner(
        [part(name, lambda bench: turns(bench, order, 3)) for name in ("a", "b")],
        quick=True,
    ).run()
    assert order == [OTTLA, KAFKA] * 6
    assert started == [OTTLA, KAFKA]
    found = load("b", quick=True)
    assert found is not None
    assert found.entries("speed", (OTTLA, KAFKA)) != []


def test_who_has_no_turn_is_stopped(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one goes on, and both do when a part has ended."""
    brokers: dict[str, StandIn] = {}

    def make(name: str, *_: object) -> StandIn:
        return brokers.setdefault(name, StandIn(name))

    monkeypatch.setattr(runner, "make_broker", make)
    stopped: list[list[str]] = []

    def look() -> None:
        stopped.append([name for name, broker in brokers.items() if broker.is_stopped])

    def run(bench: Bench) -> Iterator[None]:
        for _ in range(2):
            look()
            yield

    def after(bench: Bench) -> None:
        if bench.broker.name == OTTLA:
            look()

    Runner([part("a", run), part("b", after)], quick=True).run()
    look()
    assert stopped == [[KAFKA], [OTTLA], [KAFKA], [OTTLA], [KAFKA], []]


def test_a_part_with_a_broker_of_its_own_takes_all_turns_at_once(started: list[str]) -> None:
    """There is nobody to take turns with."""
    order: list[str] = []
    Runner([part("a", lambda bench: turns(bench, order, 2), shares_broker=False)], quick=True).run()
    assert order == [OTTLA, OTTLA, KAFKA, KAFKA]
    assert started == [OTTLA, KAFKA]


@pytest.mark.usefixtures("started")
def test_who_fails_leaves_the_turns_to_the_other() -> None:
    """The other broker's figures are kept."""
    order: list[str] = []

    def run(bench: Bench) -> Iterator[None]:
        for turn in turns(bench, order, 2):
            yield turn
            if bench.broker.name == OTTLA:
                raise OSError("out of luck")

    running = Runner([part("a", run), part("b", good)], quick=True)
    running.run()
    assert order == [OTTLA, KAFKA, KAFKA]
    assert running.failures == ["ottla a failed: OSError: out of luck"]
    assert load("a", quick=True) is None
    assert load("b", quick=True) is not None


@pytest.mark.usefixtures("started")
def test_a_part_that_fails_loses_nothing_of_the_others() -> None:
    """It is told, what it had is kept, and the next part goes on."""
    run = Runner([part("bad", bad), part("good", good)], quick=False)
    run.run()
    assert len(run.failures) == 6
    assert run.failures[0] == "ottla bad failed: OSError: out of luck"
    kept, whole = load("bad", quick=False), load("good", quick=False)
    assert kept is not None
    assert whole is not None
    assert len(kept.entries("speed", (OTTLA, KAFKA))) == len(whole.entries("speed", (OTTLA, KAFKA))) == 3
    assert kept.entries("other", (OTTLA, KAFKA)) == []


@pytest.mark.usefixtures("started")
def test_old_results_stay_when_nothing_is_measured() -> None:
    """A part that fails on one of the brokers every time does not replace what was measured before."""

    def only_ottla(bench: Bench) -> None:
        if bench.broker.name == KAFKA:
            raise OSError("out of luck")
        bench.note(SPEED, 5.0)

    Runner([part("a", good)], quick=False).run()
    Runner([part("a", only_ottla)], quick=False).run()
    found = load("a", quick=False)
    assert found is not None
    assert [pair[0].value for pair in found.entries("speed", (OTTLA, KAFKA))] == [2, 2, 2]


def test_a_broker_that_dies_is_started_again_for_the_rest(started: list[str]) -> None:
    """The parts behind the one that killed it are run."""

    def kill(bench: Bench) -> None:
        bench.broker.process = None
        raise OSError("it died")

    Runner([part("deadly", kill), part("good", good)], quick=True).run()
    assert started == [OTTLA, KAFKA] * 2


def test_a_directory_is_filled_once(started: list[str]) -> None:
    """Both brokers start on it, in every round."""
    filled: list[Path] = []

    def fill(directory: Path, quick: bool) -> None:
        directory.mkdir()
        filled.append(directory)

    def without_stop(bench: Bench) -> None:
        good(bench)
        bench.broker.process = None

    Runner([part("log", without_stop, shares_broker=False, fill=fill)], quick=False).run()
    assert len(filled) == 1
    assert started == [OTTLA, KAFKA, KAFKA, OTTLA, OTTLA, KAFKA]


@pytest.mark.usefixtures("started")
def test_large_logs_come_when_all_others_are_done() -> None:
    """They fill the memory."""
    order: list[str] = []

    def log(bench: Bench) -> None:
        order.append("log")
        bench.broker.process = None

    def other(bench: Bench) -> None:
        order.append("other")

    def fill(directory: Path, quick: bool) -> None:
        directory.mkdir()

    Runner([part("log", log, shares_broker=False, fill=fill), part("other", other)], quick=False).run()
    assert order == ["other"] * 6 + ["log"] * 6


def test_what_makes_many_files_comes_first_and_keeps_them(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each broker in each round has a directory of its own, and nothing is deleted before the others have run."""
    directories: list[Path | None] = []

    def make(name: str, directory: Path | None, *_: object) -> StandIn:
        directories.append(directory)
        if directory is not None:
            directory.mkdir()
        return StandIn(name)

    monkeypatch.setattr(runner, "make_broker", make)
    seen: list[bool] = []

    def shared(bench: Bench) -> None:
        good(bench)
        seen.append(all(each.exists() for each in directories if each is not None))

    many = part("many", good, shares_broker=False, keeps_files=True, rounds=2)
    Runner([part("a", shared, rounds=2), many], quick=False).run()
    assert [each is None for each in directories] == [False, False, True, True] * 2
    assert len(set(directories)) == 5
    assert seen == [True] * 4
    assert not any(each.exists() for each in directories if each is not None)


def test_fewer_rounds_are_the_last_ones(started: list[str]) -> None:
    """What is taken once is taken at the end, and has one round in its results."""
    calls: list[str] = []

    def run(name: str) -> Callable[[Bench], None]:
        def call(bench: Bench) -> None:
            good(bench)
            calls.append(name)

        return call

    Runner([part("often", run("often"), rounds=2), part("once", run("once"), rounds=1)], quick=False).run()
    assert calls == ["often", "often", "often", "often", "once", "once"]
    found = load("once", quick=False)
    assert found is not None
    assert len(found.rounds) == 1


def test_fewer_rounds_can_be_asked_for(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """ROUNDS=1 makes one round of three, and never more of a part than it has."""
    monkeypatch.setenv("ROUNDS", "2")
    Runner([part("a", good), part("b", good, rounds=1)], quick=False).run()
    assert started == [OTTLA, KAFKA, KAFKA, OTTLA]
    found = load("b", quick=False)
    assert found is not None
    assert len(found.rounds) == 1


@pytest.mark.parametrize(
    ("speeds", "rounds"),
    [
        ([1.5, 1.4, 1.6], 3),  # all meet the aim
        ([1.2, 1.1, 1.0], 3),  # none does
        ([1.5, 1.2, 1.6, 1.4, 1.4], 5),  # the median does
        ([1.2, 1.5, 1.2, 1.2, 1.2], 5),  # the median does not
    ],
)
@pytest.mark.usefixtures("started")
def test_there_are_more_rounds_where_they_disagree(speeds: list[float], rounds: int) -> None:
    """On whichever side the median is; parts whose rounds agree are left alone."""
    left = list(speeds)
    calls = []

    def wavering(bench: Bench) -> None:
        bench.note(SPEED, left.pop(0) if bench.broker.name == OTTLA else 1.0)

    def steady(bench: Bench) -> None:
        good(bench)
        calls.append(bench.broker.name)

    aimed = Measure(SPEED.title, SPEED.unit, SPEED.more_is_better, Aim(ratio_at_least=1.3))
    parts = [Part(name, Section(name, ""), (aimed,), run) for name, run in (("a", wavering), ("b", steady))]
    Runner(parts, quick=False).run()
    found = load("a", quick=False)
    assert found is not None
    assert len(found.rounds) == rounds
    assert len(calls) == 6


@pytest.mark.usefixtures("started")
def test_there_are_no_more_rounds_than_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """ROUNDS=2 makes two, though they disagree."""
    monkeypatch.setenv("ROUNDS", "2")
    left = [1.5, 1.0]

    def wavering(bench: Bench) -> None:
        bench.note(SPEED, left.pop(0) if bench.broker.name == OTTLA else 1.0)

    aimed = Measure(SPEED.title, SPEED.unit, SPEED.more_is_better, Aim(ratio_at_least=1.3))
    Runner([Part("a", Section("a", ""), (aimed,), wavering)], quick=False).run()
    assert left == []


def test_what_is_left_is_guessed_until_it_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """From the part's own guess first, and then from how long it took."""
    first, second = part("a", good, seconds=100), part("b", good, seconds=10)
    progress = Progress([(OTTLA, first), (OTTLA, second), (OTTLA, first)], quick=False)
    assert progress.seconds_left() == 210
    progress.begin("ottla a")
    progress.end(OTTLA, first)
    assert progress.seconds_left() == pytest.approx(10, abs=5)
    progress.say("words")
    assert "left)  ottla a" in capsys.readouterr().out
