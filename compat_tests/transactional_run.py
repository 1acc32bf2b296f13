"""Transactional clients of all libraries at work on a broker, with a history of what they did and saw.

A run has two topics: `source`, and `target`, which transactions write to. `finish` reads everything to its end and
holds the history against the rules of compat_tests/history.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.eventually import eventually
from compat_tests.history.check import check
from compat_tests.history.operations import Bounds, Commit, Committed, Init, Outcome, Poll, Send, Step
from compat_tests.history.recorder import Happening, Recorder
from compat_tests.raw_client import ConnectionClosed, RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic, wait_until_served
from compat_tests.transactional.confluent import Client as ConfluentClient
from compat_tests.transactional.process import ClientFailed, ClientProcess
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

PATIENCE_SECONDS = 90
PARTITIONS = 3
BATCH = 10


class NotServed(Exception):
    """A partition has no leader at the moment."""


class RecordedProducer:
    """A transactional producer whose transactions go into the history."""

    def __init__(self, run: TransactionRun, library: str, transactional_id: str, **settings: str) -> None:
        self._run = run
        self.name = f"{library}-{next(run.numbers)}"
        self.transactional_id = transactional_id
        self.client = run.client(library, transactional_id=transactional_id, **settings)

    def init(self) -> None:
        """Take over the transactional id."""
        happening = self._run.recorder.begin(self.name, Init(self.transactional_id))
        self.client.ask("init")
        happening.end(Outcome.OK, Init(self.transactional_id))

    def transact(
        self,
        values: Mapping[int, Sequence[str]],
        end: str = "commit",
        *,
        offsets: Mapping[int, int] | None = None,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        """A transaction on the target, with offsets of the source, that ends as told, or ClientFailed."""
        target, source, group = self._run.target, self._run.source, self._run.group
        commits = [Commit(group, f"{source}-{partition}", at) for partition, at in (offsets or {}).items()]
        steps: list[Step] = [
            Send(f"{target}-{partition}", value) for partition, found in values.items() for value in found
        ]
        happening = self._run.recorder.begin(
            self.name, *steps, *commits, transactional_id=self.transactional_id
        )
        # What was not asked to commit did not happen, whatever the error.
        outcome_of_error = Outcome.FAIL
        try:
            self.client.ask("begin")
            steps = []
            for partition, found in values.items():
                places = map(int, self.client.ask("send", target, str(partition), *found))
                steps += [
                    Send(f"{target}-{partition}", value, at) for value, at in zip(found, places, strict=True)
                ]
            for partition, at in (offsets or {}).items():
                self.client.ask("offsets", group, source, str(partition), str(at))
            before_end()
            outcome_of_error = Outcome.INFO if end == "commit" else Outcome.FAIL
            self.client.ask(end)
        except ClientFailed as error:
            happening.end(Outcome.FAIL if error.is_fenced else outcome_of_error)
            raise
        happening.end(Outcome.OK if end == "commit" else Outcome.FAIL, *steps, *commits)


class Copier:
    """A process that copies the source into the target, a transaction for each batch."""

    def __init__(self, run: TransactionRun, library: str, transactional_id: str, way: str) -> None:
        self.name = f"{library}-{next(run.numbers)}"
        self.has_ended = False
        self.failures: list[str] = []
        self.at = "starting"
        self._run = run
        self._transactional_id = transactional_id
        self._trying: Happening | None = None
        self.client = run.client(library, transactional_id=transactional_id)
        self.client.order("copy", run.source, run.target, str(PARTITIONS), run.group, str(BATCH), way)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        self.client.kill()
        self._thread.join()

    def join(self) -> None:
        """Until it has ended."""
        self._thread.join()

    def leave(self) -> None:
        """Let it finish what it is at, and end."""
        self.client.end_input()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the copier does not end"
        self.client.kill()

    def _listen(self) -> None:
        for kind, *words in iter(self.client.listen, []):
            with self._run.changed:
                self.at = f"{kind} {' '.join(words)}"[:100]
                if kind == "trying":
                    self._trying = self._run.recorder.begin(
                        self.name, *self._steps(*words), transactional_id=self._transactional_id
                    )
                    self._run.tried += 1
                elif kind == "committed":
                    assert self._trying is not None
                    self._trying.end(Outcome.OK)
                    self._trying = None
                    self._run.committed += 1
                elif kind == "failed":
                    self.failures.append(" ".join(words))
                self._run.changed.notify_all()
        with self._run.changed:
            self.has_ended = True
            self._run.changed.notify_all()

    def _steps(self, offsets: str, records: str) -> list[Step]:
        sends = [Send(f"{self._run.target}-{at}", value) for at, value in _pairs(records)]
        commits = [
            Commit(self._run.group, f"{self._run.source}-{at}", int(next_offset))
            for at, next_offset in _pairs(offsets)
        ]
        return [*sends, *commits]


class Keeper:
    """Starts a copier, and another whenever one has ended, until told to stop."""

    def __init__(self, run: TransactionRun, library: str, way: str, transactional_id: str) -> None:
        self._run = run
        self._start = functools.partial(run.copier, library, way, transactional_id)
        self._stopping = False
        self._current: Copier | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def kill_current(self) -> None:
        """kill -9 of the copier that runs; the next one is started by itself."""
        current = self._current
        if current is not None:
            current.client.kill()

    def stop(self) -> None:
        """Let the last copier finish what it is at."""
        self._stopping = True
        current = self._current
        if current is not None:
            current.client.end_input()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "a copier does not end"

    def abandon(self) -> None:
        """End at once, whatever the copier is at."""
        self._stopping = True
        while self._thread.is_alive():
            self.kill_current()
            self._thread.join(0.1)

    def _keep(self) -> None:
        while not self._stopping:
            self._current = self._start()
            self._current.join()


class Watcher:
    """Reads the target under read_committed all the while, and asks for its bounds.

    A patient one lets the broker hold its fetches until there is more than a transaction: what was open when they came
    may be aborted when they are answered.
    """

    def __init__(self, run: TransactionRun, *, is_patient: bool) -> None:
        self._run = run
        self._name = "patient watcher" if is_patient else "watcher"
        self._settings: dict[str, Any] = {"fetch.wait.max.ms": 50}
        if is_patient:
            self._settings = {"fetch.wait.max.ms": 400, "fetch.min.bytes": 2000}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)

    def _watch(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._run.bootstrap,
                "group.id": "watcher",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
                **self._settings,
            }
        )
        consumer.assign([TopicPartition(self._run.target, partition, 0) for partition in range(PARTITIONS)])
        while not self._stop.is_set():
            found: dict[str, list[tuple[int, str]]] = {}
            messages: list[Any] = consumer.consume(500, 0.1)
            for message in messages:
                if message.error() is None:
                    place = found.setdefault(f"{self._run.target}-{message.partition()}", [])
                    place.append((message.offset(), message.value().decode()))
            if found:
                self._run.recorder.happened(
                    self._name, *(Poll(key, tuple(records)) for key, records in found.items())
                )
                self._run.look_at_bounds()
        consumer.close()


class TransactionRun:
    """Two topics, a group, and whoever works with them."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.source, self.target, self.group = f"{name}-source", f"{name}-target", f"{name}-group"
        self.recorder = Recorder()
        self.numbers = itertools.count(1)
        self.changed = threading.Condition()
        self.tried = self.committed = 0
        self.copiers: list[Copier] = []
        self._scratch = tempfile.TemporaryDirectory(prefix="transactions-")
        self._resources = ExitStack()
        with RawClient.to(bootstrap) as raw:
            for topic in (self.source, self.target):
                create_topic(raw, topic, PARTITIONS)
            wait_for_coordinator(raw, self.group)

    def client(self, library: str, **settings: str) -> ClientProcess:
        made = ClientProcess(library, Path(self._scratch.name), bootstrap_servers=self.bootstrap, **settings)
        self._resources.callback(made.close)
        return made

    def producer(self, library: str, transactional_id: str = "", **settings: str) -> RecordedProducer:
        return RecordedProducer(self, library, transactional_id or self.target, **settings)

    def copier(self, library: str, way: str = "assign", transactional_id: str = "") -> Copier:
        made = Copier(self, library, transactional_id or f"{self.target}-copier", way)
        self.copiers.append(made)
        self._resources.callback(made.kill)
        return made

    def keep_copying(self, library: str, way: str = "assign", transactional_id: str = "") -> Keeper:
        keeper = Keeper(self, library, way, transactional_id)
        self._resources.callback(keeper.abandon)
        return keeper

    def watch(self) -> None:
        """Start readers that are stopped at the end."""
        for is_patient in (False, True):
            self._resources.callback(Watcher(self, is_patient=is_patient).stop)

    def fill(self, count: int, first: int = 0) -> None:
        """Numbered records over all partitions of the source, idempotent and acknowledged."""
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0}
        producer = Producer(settings)
        placed: list[Step] = []

        def delivered(_error: object, message: Any) -> None:
            placed.append(
                Send(f"{self.source}-{message.partition()}", message.value().decode(), message.offset())
            )

        for number in range(first, first + count):
            producer.produce(
                self.source,
                str(number).encode(),
                partition=number % PARTITIONS,
                on_delivery=delivered,
            )
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert len(placed) == count
        self.recorder.happened("filler", *placed)

    def wait_for_tries(self, more: int) -> None:
        """Until copiers have begun so many more transactions; the last of them is probably open."""
        with self.changed:
            goal = self.tried + more
            reached = self.changed.wait_for(lambda: self.tried >= goal, PATIENCE_SECONDS)
        assert reached, f"{self.tried} of {goal} transactions begun: {self._last_words()}"

    def wait_for_commits(self, more: int) -> None:
        """Until copiers have committed so many more."""
        with self.changed:
            goal = self.committed + more
            reached = self.changed.wait_for(lambda: self.committed >= goal, PATIENCE_SECONDS)
        assert reached, f"{self.committed} of {goal} transactions committed: {self._last_words()}"

    def wait_until_copied(self) -> None:
        """Until the group has come to the end of the source."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with RawClient.to(self.bootstrap) as raw:
            wait_until_served(raw, self.source, PARTITIONS)
            ends = _list_offsets(raw, self.source, -1, 0)
        wanted = [Committed(self.group, f"{self.source}-{at}", end) for at, end in sorted(ends.items())]
        while (committed := self._committed()) != wanted:
            assert time.monotonic() < deadline, f"not copied, but {committed}: {self._last_words()}"
            with self.changed:
                self.changed.wait(0.1)

    # The end -----------------------------------------------------------------------------------------------

    def wait_until_settled(self) -> None:
        """Until no transaction is open on the target."""
        eventually(
            lambda: all(each.last_stable_offset == each.high_watermark for each in self._bounds()), True
        )

    def finish(self, *, is_copied: bool = False) -> dict[int, list[str]]:
        """Read all to the end, judge the history; the values of each partition of the target."""
        with RawClient.to(self.bootstrap) as raw:
            wait_until_served(raw, self.target, PARTITIONS)
        self.wait_until_settled()
        reader = ConfluentClient({"bootstrap.servers": self.bootstrap})
        values = {}
        for topic in (self.source, self.target):
            for partition in range(PARTITIONS):
                records = reader.read(topic, partition, "read_committed")
                self.recorder.happened("last", Poll(f"{topic}-{partition}", tuple(records)), final=True)
                if topic == self.target:
                    values[partition] = [value for _, value in records]
        self.look_at_bounds()
        self.recorder.happened("last", *self._committed())
        copies = [(self.source, self.target)] if is_copied else []
        wrong = check(self.recorder.operations(), copies=copies)
        if wrong:
            path = Path(tempfile.gettempdir()) / f"history-of-{self.target}.jsonl"
            self.recorder.save(path)
            raise AssertionError("\n".join([f"the history is in {path}", *map(str, wrong[:20])]))
        return values

    def look_at_bounds(self) -> None:
        happening = self.recorder.begin("looker")
        try:
            happening.end(Outcome.OK, *self._bounds())
        except (OSError, ConnectionClosed, NotServed):
            happening.end(Outcome.FAIL)  # the broker is being restarted

    def _last_words(self) -> str:
        """What the copiers were at, and those that run wrote last; for whoever reads why a wait was in vain."""
        lines = [f"{each.name}: {each.at} {each.failures}" for each in self.copiers[-8:]]
        running = [each for each in self.copiers if not each.has_ended]
        return "\n".join([*lines, *(f"{each.name} wrote\n{each.client.errors()}" for each in running)])

    def close(self) -> None:
        """End everybody."""
        self._resources.close()
        self._scratch.cleanup()

    def _bounds(self) -> list[Bounds]:
        """Asked one after the other, the lowest first, each of which only grows."""
        with RawClient.to(self.bootstrap) as raw:
            starts, stable, ends = (
                _list_offsets(raw, self.target, timestamp, isolation)
                for timestamp, isolation in ((-2, 0), (-1, 1), (-1, 0))
            )
        return [
            Bounds(f"{self.target}-{partition}", starts[partition], stable[partition], ends[partition])
            for partition in range(PARTITIONS)
        ]

    def _committed(self) -> list[Committed]:
        """What the group has, when no transaction is about to change it."""
        topics = [OffsetFetchRequestTopics(name=self.source, partition_indexes=list(range(PARTITIONS)))]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=topics)], require_stable=True
        )
        with RawClient.to(self.bootstrap) as raw:

            def ask() -> list[tuple[int, int, int]]:
                (group,) = raw.send(request, 9).groups
                return [
                    (each.error_code or group.error_code, each.partition_index, each.committed_offset)
                    for topic in group.topics
                    for each in topic.partitions
                ]

            eventually(lambda: {error for error, *_ in ask()}, {ErrorCode.NONE})
            return [
                Committed(self.group, f"{self.source}-{partition}", None if offset < 0 else offset)
                for _, partition, offset in ask()
            ]


def _list_offsets(raw: RawClient, topic: str, timestamp: int, isolation_level: int) -> dict[int, int]:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in range(PARTITIONS)]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=wanted)],
    )
    (answer,) = raw.send(request, 7).topics
    if any(each.error_code != ErrorCode.NONE for each in answer.partitions):
        raise NotServed
    return {each.partition_index: each.offset for each in answer.partitions}


def _pairs(words: str) -> list[tuple[str, str]]:
    pairs = (word.partition(":") for word in words.split(","))
    return [(first, second) for first, _, second in pairs]
