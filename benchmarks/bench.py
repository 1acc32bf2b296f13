"""A part of the benchmark, and what it has at hand while it runs on one broker in one round."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import clients
from benchmarks.client_process import run_client
from benchmarks.first_acknowledgement import FirstAcknowledgement
from benchmarks.loop_lag import Lag, LagOfTurns, read_lag
from benchmarks.measures import Entry, Figures, Measure
from benchmarks.process_figures import Stopwatch, resident_mb
from benchmarks.report import Section
from benchmarks.results import PartResults
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import KAFKA_DEFAULT_OPTIONS, RealKafka
from compat_tests.ottla_process import OttlaProcess

T = TypeVar("T")

OTTLA, KAFKA = "ottla", "kafka"
MACHINE = "machine"  # in place of a broker: what the machine can do by itself
BROKER_NAMES = (OTTLA, KAFKA)
DELETE_SECONDS = 1.5
# Files of deleted topics go at once, on both brokers, and none is thought dead that was stopped during the other's
# turn. By default Kafka lets 50 connections wait to be let in, and whoever is one too many tries again a second later:
# that second is nobody's speed. All else is by default.
SHARED_SETTINGS = {
    "log.segment.delete.delay.ms": "100",
    "broker.session.timeout.ms": "3600000",
    "socket.listen.backlog.size": "4096",
}


def make_broker(name: str, data_dir: Path | None, properties: Mapping[str, str]) -> BrokerProcess:
    """One of the two; Kafka with its own start script's JVM settings."""
    if name == OTTLA:
        return OttlaProcess(data_dir, properties)
    return RealKafka(data_dir, properties, java_options=KAFKA_DEFAULT_OPTIONS)


def is_quick() -> bool:
    """Whether a short run is asked for."""
    return os.environ.get("QUICK", "") not in ("", "0")


def has_fewer_rounds() -> bool:
    """Whether a number of rounds is asked for."""
    return os.environ.get("ROUNDS", "") != ""


class Bench:
    """One pass: a broker that runs, and the figures taken so far."""

    def __init__(
        self,
        broker: BrokerProcess | None,
        quick: bool,
        say: Callable[[Measure, Entry], None],
        first: FirstAcknowledgement | None = None,
    ) -> None:
        self._broker = broker
        self.quick = quick
        self._first = first
        self.entries: dict[str, Entry] = {}
        self.lag = LagOfTurns()
        self._topics: list[str] = []
        self._say = say

    @property
    def broker(self) -> BrokerProcess:
        """The broker that is measured; a part of the machine has none."""
        assert self._broker is not None, "no broker runs in this part"
        return self._broker

    @property
    def first(self) -> FirstAcknowledgement:
        """The client that was there before the broker; a part of the start has one."""
        assert self._first is not None, "this part is not of the start"
        return self._first

    def size(self, full: T, quick: T) -> T:
        """How much, in a full run and in a short one."""
        return quick if self.quick else full

    def create_topic(self, topic: str, partitions: int = 1) -> str:
        """Make a topic, which is there until `delete_topics`."""
        clients.create_topic(self.broker, topic, partitions)
        self._topics.append(topic)
        return topic

    def delete_topics(self, rest_seconds: float = DELETE_SECONDS) -> None:
        """Delete what was made since the last time, and give the broker time to remove the files: what is not on the
        disk yet need not be written, and the disk is not what is measured. A short run writes too little to
        matter."""
        if self._topics and not self.quick:
            clients.delete_topics(self.broker, self._topics)
            self.rest(rest_seconds)
        self._topics = []

    def run(self, function: Callable[..., Stopwatch], **arguments: Any) -> Stopwatch:
        """Call a client's function on the broker in a process of its own."""
        return run_client(self.broker, function, **arguments)

    def note(self, measure: Measure, value: float, watch: Stopwatch | None = None) -> None:
        """A figure, with what the stopwatch saw beside it, or the broker's memory at least."""
        entry = Entry(value, 0.0 if self._broker is None else resident_mb(self._broker.pid))
        if watch is not None:
            entry = Entry(
                value,
                watch.resident_mb,
                watch.client,
                watch.client_waits,
                watch.cores,
                watch.under_way,
                watch.broker_cores,
            )
        self.entries[measure.title] = entry
        self._say(measure, entry)

    def read_lag(self) -> Lag:
        """How late the broker's loop was since the last time, which is kept; nothing for one that does not tell."""
        lag = read_lag(self._broker) if self._broker is not None else Lag()
        self.lag.add(lag)
        return lag

    def skip_lag(self) -> None:
        """Leave out what was before; the first time begins the measurement."""
        if self._broker is not None:
            read_lag(self._broker)

    def note_all(self, figures: Figures) -> None:
        """Figures with nothing beside them."""
        for measure, value in figures.items():
            self.note(measure, value)

    def rest(self, seconds: float) -> None:
        """Let the broker come to rest."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Part:
    """What can be run alone: `make bench ONLY=name`. It yields wherever the other broker may have its turn, so that the
    figures of both are taken one right after the other."""

    name: str
    section: Section
    measures: Sequence[Measure]
    run: Callable[[Bench], Iterator[None] | None]
    shares_broker: bool = True  # with the other parts of a round, which is warm by then; both brokers run
    properties: Mapping[str, str] = field(default_factory=dict)
    fill: Callable[[Path, bool], None] | None = None  # makes the directory on which both brokers start, once
    plots: Callable[[PartResults], Mapping[str, tuple[str, str]]] | None = None
    table: Callable[[PartResults], str] | None = None  # in place of the usual one
    is_of_start: bool = False  # of the broker that is started for it
    is_of_machine: bool = False
    is_after_all: bool = False  # the others of its round, which it is about; there are no more rounds of it
    keeps_files: bool = False  # until the run is over, and it comes first in its round; see Runner
    in_quick: bool = True
    rounds: int = 3
    seconds: float = 20  # about, on one broker in a full run, until it has been seen

    def rounds_in(self, quick: bool) -> int:
        """One in a short run, else its own number; ROUNDS=1 asks for fewer, and never gives a part more."""
        asked = int(os.environ.get("ROUNDS", "") or self.rounds)
        return 1 if quick else max(1, min(asked, self.rounds))
