"""Runs parts on both brokers in turns, round after round, and keeps what each pass gave.

In a round each broker is started once for the parts that share it, and once for each that does not. Where they share
it, both brokers run, and take turns within each part: what a shared machine does to one figure, it mostly does to the
next one, too, and ratios are of neighbours. Who has no turn has come to rest, and is stopped (SIGSTOP). A part that
fails is told and left out; the others go on, on a broker that is started anew if it died with it.

A part that makes very many files comes first in its round, and its files are deleted when all is over: ext4 looks at
every file that was deleted in the last minutes before it makes one, which the next broker would pay for. Parts with
large logs, which fill the memory, come after all rounds of the others. Which broker is first is by turns. What is
taken in fewer rounds than the others is taken in the last ones.

Where the rounds of a part do not agree whether an aim is met, on whichever side their median is, there are two more.
"""

import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks import clients, raw_load
from benchmarks.bench import (
    BROKER_NAMES,
    MACHINE,
    SHARED_SETTINGS,
    Bench,
    Part,
    has_fewer_rounds,
    make_broker,
)
from benchmarks.client_process import ClientFailed, run_client
from benchmarks.first_acknowledgement import FirstAcknowledgement
from benchmarks.held_memory import held_memory
from benchmarks.page import rows_of
from benchmarks.part_pass import PartPass
from benchmarks.process_figures import OtherWork
from benchmarks.progress import Progress
from benchmarks.results import CHECKOUT, PartResults, save
from compat_tests.broker_process import BrokerFailed, BrokerProcess

QUICK_MEMORY_BYTES = 4_000_000_000
MORE_ROUNDS = 2
WARM_UP_SECONDS, QUICK_WARM_UP_SECONDS = 15.0, 5.0
FAILURES = (
    ArithmeticError,
    AssertionError,
    BrokerFailed,
    ClientFailed,
    KafkaException,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
    subprocess.SubprocessError,
)


class Runner:
    """One run of some parts."""

    def __init__(self, parts: Sequence[Part], quick: bool) -> None:
        self._parts = [part for part in parts if part.in_quick or not quick]
        self._quick = quick
        self._rounds = max(part.rounds_in(quick) for part in self._parts)
        self._others = OtherWork()
        self._scratch = tempfile.TemporaryDirectory(prefix="ottla-bench-")
        today = datetime.now(UTC).date().isoformat()
        about = today, version("ottla"), commit()
        self._results = {part.name: PartResults(part.name, *about) for part in self._parts}
        self._progress = Progress(
            [step for part in self._parts for step in self._steps(part) * part.rounds_in(quick)], quick
        )
        self.failures: list[str] = []

    def run(self) -> None:
        """All rounds."""
        self._progress.say("uses all free memory once")
        with self._scratch, held_memory(QUICK_MEMORY_BYTES if self._quick else None):
            for parts in (
                [part for part in self._parts if part.fill is None],
                [part for part in self._parts if part.fill is not None],
            ):
                for number in range(self._rounds):
                    due = [part for part in parts if number >= self._rounds - part.rounds_in(self._quick)]
                    self._round(due, number)
                if not self._quick and not has_fewer_rounds():
                    self._more_rounds(parts)

    def _more_rounds(self, parts: Sequence[Part]) -> None:
        """Of those that are not sure of their aims yet."""
        for number in range(self._rounds, self._rounds + MORE_ROUNDS):
            parts = [part for part in parts if is_unsure(part, self._results[part.name])]
            if not parts:
                return
            self._progress.add([step for part in parts for step in self._steps(part)])
            self._round(parts, number)

    def _round(self, due: Sequence[Part], number: int) -> None:
        for part in due:
            self._results[part.name].rounds.append({})
        for part in (part for part in due if part.keeps_files):
            self._own_passes(part, number)
        for part in (part for part in due if part.is_of_machine):
            self._take_turns([self._pass_of(part, MACHINE, None)], number)
        for part in (part for part in due if part.is_of_start):
            self._own_passes(part, number)
        self._shared_passes([part for part in due if part.shares_broker], number)
        for part in due:
            if not (part.shares_broker or part.is_of_machine or part.keeps_files or part.is_of_start):
                self._own_passes(part, number)
        self._save(due)

    def _names(self, part: Part) -> Sequence[str]:
        return (MACHINE,) if part.is_of_machine else BROKER_NAMES

    def _steps(self, part: Part) -> list[tuple[str, Part]]:
        """Of one round."""
        return [(name, part) for name in self._names(part)]

    def _shared_passes(self, parts: Sequence[Part], number: int) -> None:
        """A process of each broker for all these parts, which take turns in them."""
        brokers: dict[str, BrokerProcess] = {}
        with ExitStack() as stack:
            for part in parts:
                try:
                    for name in _in_turn(number):
                        if name not in brokers or not _lives(brokers[name]):
                            brokers[name] = self._started(name, number, stack)
                except FAILURES as error:
                    self._failed(f"{name} before {part.name}", error)
                    for each in BROKER_NAMES:
                        self._progress.end(each, part)
                    continue
                passes = [self._pass_of(part, name, brokers[name]) for name in _in_turn(number)]
                self._take_turns(passes, number)

    def _started(self, name: str, number: int, stack: ExitStack) -> BrokerProcess:
        """A broker that is warm, until the stack is closed."""
        self._progress.begin(f"[{self._number(number)}] {name}")
        with ExitStack() as trial:
            broker = trial.enter_context(make_broker(name, None, SHARED_SETTINGS))
            self._warm_up(broker)
            stack.enter_context(trial.pop_all())
        return broker

    def _own_passes(self, part: Part, number: int) -> None:
        """On both brokers."""
        for name in _in_turn(number):
            self._own_pass(part, name, number)

    def _own_pass(self, part: Part, name: str, number: int) -> None:
        """A process for this part alone, on its directory if it has one."""
        self._progress.begin(f"[{self._number(number)}] {name} {part.name}")
        try:
            directory = self._directory(part, f"{part.name}-{name}-{number}")
            broker = make_broker(name, directory, part.properties)
            broker.prepare()
            with _client_of_start(part, broker) as first, broker:
                self._take_turns([self._pass_of(part, name, broker, first)], number)
                if part.fill is not None and _lives(broker):  # the next one starts on what it leaves
                    broker.stop()
        except FAILURES as error:
            self._failed(f"{name} {part.name}", error)

    def _directory(self, part: Part, own_name: str) -> Path | None:
        if part.keeps_files:
            return Path(self._scratch.name) / own_name
        if part.fill is None:
            return None
        directory = Path(self._scratch.name) / part.name
        if not directory.exists():
            self._progress.say("writes the logs that both brokers start on")
            part.fill(directory, self._quick)
        return directory

    def _pass_of(
        self, part: Part, name: str, broker: BrokerProcess | None, first: FirstAcknowledgement | None = None
    ) -> PartPass:
        return PartPass(part, name, Bench(broker, self._quick, self._progress.figure, first), broker)

    def _take_turns(self, passes: Sequence[PartPass], number: int) -> None:
        """Of one part, and keep the figures that were taken."""
        left = list(passes)
        while left:
            for each in tuple(left):
                for other in passes:
                    if other is not each:
                        other.pause()
                each.resume()
                if not self._take_turn(each, number):
                    left.remove(each)
        for each in passes:
            each.resume()
            taken = each.taken()
            if taken is not None:
                self._results[each.part.name].rounds[-1][each.name] = taken

    def _take_turn(self, each: PartPass, number: int) -> bool:
        """Whether there are more."""
        self._progress.begin(f"[{self._number(number)}] {each.name} {each.part.name}")
        try:
            has_more = each.go_on()
        except FAILURES as error:
            self._failed(f"{each.name} {each.part.name}", error)
            has_more = False
        if has_more:
            self._progress.pause(each.name, each.part)
        else:
            self._progress.end(each.name, each.part)
        return has_more

    def _warm_up(self, broker: BrokerProcess) -> None:
        """Some of everything for a while: a JIT compiler needs time rather than a certain amount of work."""
        self._progress.say("warms up")
        clients.create_topic(broker, "warm-up")
        clients.create_topic(broker, "warm-up-8", 8)
        end = time.perf_counter() + (QUICK_WARM_UP_SECONDS if self._quick else WARM_UP_SECONDS)
        while time.perf_counter() < end:
            run_client(broker, clients.produce, topic="warm-up", size=1024, count=40_000, acks="all")
            run_client(broker, clients.fetch, topic="warm-up", count=40_000)
            run_client(broker, clients.serial, topic="warm-up", count=300)
            run_client(
                broker,
                raw_load.produce,
                topic="warm-up-8",
                size=100,
                records=1,
                requests=3_000,
                connections=8,
                partitions=8,
            )
        # Memory that has just been used is at hand for the first figures.
        clients.delete_topics(broker, ["warm-up", "warm-up-8"])

    def _number(self, number: int) -> str:
        """Which round it is of how many; those that nobody knew of at first are more."""
        return f"{number + 1}/{max(self._rounds, number + 1)}"

    def _failed(self, what: str, error: BaseException) -> None:
        place = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
        said = str(error).strip()[-400:] or (f"{place.name}: {place.line}" if place else "")
        words = f"{what} failed: {type(error).__name__}: {said}"
        self.failures.append(words)
        self._progress.say(words)

    def _save(self, parts: Sequence[Part]) -> None:
        """What there is. A part without a round in which all its brokers were measured leaves its old results."""
        other_cores = self._others.cores()
        for part in parts:
            results = self._results[part.name]
            if any(set(self._names(part)) <= each.keys() for each in results.rounds):
                results.other_cores = other_cores
                save(results, self._quick)


def commit() -> str:
    """What is measured: the commit, with a + where there is more than that; nothing where there is no git."""
    try:
        about = subprocess.run(
            ["git", "describe", "--always", "--exclude=*", "--dirty=+"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return about.stdout.strip()


def is_unsure(part: Part, results: PartResults) -> bool:
    """Whether there is an aim that some rounds meet and others do not, and more rounds could tell."""
    return not part.is_after_all and any(row.verdict.is_unsure for row in rows_of(part, results))


def _in_turn(number: int) -> Sequence[str]:
    """The brokers in the order of a round."""
    return BROKER_NAMES if number % 2 == 0 else BROKER_NAMES[::-1]


@contextmanager
def _client_of_start(part: Part, broker: BrokerProcess) -> Iterator[FirstAcknowledgement | None]:
    """Who knocks before the broker is there, if that is what the part measures."""
    if not part.is_of_start:
        yield None
        return
    client = FirstAcknowledgement(broker)
    client.start()
    try:
        yield client
    finally:
        client.end()


def _lives(broker: BrokerProcess) -> bool:
    return broker.process is not None and broker.process.poll() is None
