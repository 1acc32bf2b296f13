"""Runs parts on both brokers in turns, round after round, and keeps what each pass gave.

In a round each broker is started once for the parts that share it, and once for each that does not. A part that fails
is told and left out; the others go on, on a broker that is started anew if it died with it.

A part that makes very many files comes first in its round, and its files are deleted when all is over: ext4 looks at
every file that was deleted in the last minutes before it makes one, which the next broker would pay for. Parts with
large logs, which fill the memory, come after all rounds of the others. Which broker is first is by turns. What is
taken in fewer rounds than the others is taken in the last ones.
"""

import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks import clients, raw_load
from benchmarks.bench import BROKER_NAMES, MACHINE, SHARED_SETTINGS, Bench, Part, make_broker
from benchmarks.client_process import ClientFailed, run_client
from benchmarks.first_acknowledgement import FirstAcknowledgement
from benchmarks.held_memory import held_memory
from benchmarks.loop_lag import read_lag
from benchmarks.process_figures import OtherWork
from benchmarks.progress import Progress
from benchmarks.results import PartResults, Pass, save
from compat_tests.broker_process import BrokerFailed, BrokerProcess

QUICK_MEMORY_BYTES = 4_000_000_000
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
        self._results = {part.name: PartResults(part.name, today, version("ottla")) for part in self._parts}
        steps = [
            (name, part)
            for part in self._parts
            for name in self._names(part)
            for _ in range(part.rounds_in(quick))
        ]
        self._progress = Progress(steps, quick)
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
                    self._round(parts, number)

    def _round(self, parts: Sequence[Part], number: int) -> None:
        due = [part for part in parts if number >= self._rounds - part.rounds_in(self._quick)]
        for part in due:
            self._results[part.name].rounds.append({})
        for part in (part for part in due if part.keeps_files):
            self._own_passes(part, number)
        for part in (part for part in due if part.is_of_machine):
            self._attempt(part, MACHINE, number, None)
        shared = [part for part in due if part.shares_broker]
        for name in _in_turn(number):
            if shared:
                self._shared_pass(shared, name, number)
        for part in due:
            if not (part.shares_broker or part.is_of_machine or part.keeps_files):
                self._own_passes(part, number)
        self._save(due)

    def _names(self, part: Part) -> Sequence[str]:
        return (MACHINE,) if part.is_of_machine else BROKER_NAMES

    def _shared_pass(self, parts: Sequence[Part], name: str, number: int) -> None:
        """One process for all these parts, which is warm after the first of them."""
        left = list(parts)
        while left:
            self._progress.begin(f"[{number + 1}/{self._rounds}] {name}")
            broker = make_broker(name, None, SHARED_SETTINGS)
            try:
                broker.prepare()
                with _client_of_start(left[0], broker) as first, broker:
                    if first is not None:
                        self._attempt(left.pop(0), name, number, broker, first)
                    if left:
                        self._warm_up(broker)
                    while left and _lives(broker):
                        self._attempt(left.pop(0), name, number, broker)
            except FAILURES as error:
                self._failed(f"{name} between parts", error)
                if left:  # the next part may have been the reason
                    left.pop(0)

    def _own_passes(self, part: Part, number: int) -> None:
        """On both brokers."""
        for name in _in_turn(number):
            self._own_pass(part, name, number)

    def _own_pass(self, part: Part, name: str, number: int) -> None:
        """A process for this part alone, on its directory if it has one."""
        self._progress.begin(f"[{number + 1}/{self._rounds}] {name} {part.name}")
        try:
            directory = self._directory(part, f"{part.name}-{name}-{number}")
            with make_broker(name, directory, part.properties) as broker:
                self._attempt(part, name, number, broker)
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

    def _attempt(
        self,
        part: Part,
        name: str,
        number: int,
        broker: BrokerProcess | None,
        first: FirstAcknowledgement | None = None,
    ) -> None:
        """Run a part, and keep the figures it took."""
        self._progress.begin(f"[{number + 1}/{self._rounds}] {name} {part.name}")
        bench = Bench(broker, self._quick, self._progress.figure, first)
        # The first look begins the measurement, and later ones leave out what was before. Nothing must be before the
        # first acknowledgement.
        watched = None if part.is_of_start else broker
        lag: dict[str, float] = {}
        longest_work = ""
        try:
            if watched is not None:
                read_lag(watched)
            part.run(bench)
            if watched is not None:
                lag, longest_work = read_lag(watched)
            bench.delete_topics()
        except FAILURES as error:
            self._failed(f"{name} {part.name}", error)
        if bench.entries:
            self._results[part.name].rounds[-1][name] = Pass(bench.entries, lag, longest_work)
        self._progress.end(name, part)

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
