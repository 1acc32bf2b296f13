"""Kafka Streams with exactly_once_v2: a word count and joins, each killed on its way, whose results are there once.

compat_tests/test_streams.py kills a word count again and again, and looks at every transaction; here it is enough that
the results are right.
"""

import base64
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from compat_tests.kafka.jars import streams_classpath
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.drivers.java_clients import compiled
from compat_tests.matrix.ecosystem.java_process import JavaProcess
from compat_tests.matrix.ecosystem.kafka_clients import STREAMS

AREA = "Streams"
SOURCES = Path(__file__).parents[2] / "kafka" / "java"
PARTITIONS = 2
PATIENCE_SECONDS = 90
# Records must not be older than the retention of a changelog, or what was in its window is gone after a restart.
AGE_MS = 600_000
USERS = [f"user{number}" for number in range(6)]

Line = tuple[str, str, int]  # key, value, milliseconds since the beginning


class Application:
    """A Streams application on topics of its own; the same key is in the same partition of each."""

    def __init__(self, run: Run, main_class: str, **settings: str) -> None:
        self._run = run
        self._main_class = main_class
        self._settings = settings
        self.target = run.create(PARTITIONS)
        self._name = run.name("application")
        self._beginning_ms = int(time.time() * 1_000) - AGE_MS

    def start(self, directory: Path) -> JavaProcess:
        """Start it, for the first time or again."""
        settings = {
            "bootstrap.servers": self._run.bootstrap,
            "application.id": self._name,
            "target": self.target,
            "state.dir": str(directory),
            "commit.interval.ms": "50",
            "replication.factor": "1",
            # The same member comes back: nobody has to wait for the session of the dead one.
            "main.consumer.group.instance.id": self._name,
            "consumer.auto.offset.reset": "earliest",
            **self._settings,
        }
        classes = compiled(self._main_class, [SOURCES / f"{self._main_class}.java"], streams_classpath())
        arguments = [f"{name}={value}" for name, value in settings.items()]
        classpath = f"{classes}:{streams_classpath()}"
        return JavaProcess(
            self._main_class, arguments, classpath=classpath, directory=directory, memory="256m", waits=True
        )

    def send(self, topic: str, lines: Sequence[Line]) -> None:
        """Write lines to a topic."""
        records = [
            {
                "partition": sum(key.encode()) % PARTITIONS,
                "key": base64.b64encode(key.encode()).decode(),
                "value": base64.b64encode(value.encode()).decode(),
                "headers": [],
                "timestamp": self._beginning_ms + at_ms,
            }
            for key, value, at_ms in lines
        ]
        self._run.stage.call("produce", topic=topic, records=records, acks=-1, codec="none", idempotent=True)

    def results(self) -> list[str]:
        """What it has written, in transactions that were committed."""
        found: list[str] = []
        for partition in range(PARTITIONS):
            records = self._run.stage.call(
                "fetch",
                topic=self.target,
                partition=partition,
                offset=0,
                count=None,
                isolation="read_committed",
            )
            found += [base64.b64decode(each["value"]).decode() for each in records]
        return found

    def run_until(self, process: JavaProcess, count: int) -> list[str]:
        """Wait until there are so many results."""

        def observe() -> list[str]:
            process.check()
            return self.results()

        return self._run.until(observe, lambda seen: len(seen) >= count, PATIENCE_SECONDS)

    def results_across_a_kill(
        self, parts: Sequence[Sequence[tuple[str, Sequence[Line]]]], count: int
    ) -> list[str]:
        """Send a part, kill the application in the middle of it, send the other part; all results, sorted."""
        with tempfile.TemporaryDirectory(prefix="streams-") as name:
            for number, part in enumerate(parts):
                for topic, lines in part:
                    self.send(topic, lines)
                with self.start(Path(name)) as process:
                    last = number == len(parts) - 1
                    self.run_until(process, count if last else len(self.results()) + 1)
                    process.kill()
        return sorted(self.results())


@case(AREA, "a word count, killed on its way", clients=[STREAMS])
def word_count(run: Run) -> object:
    """Each input gives one output, the word with its count so far: every count must be there once."""
    source = run.create(PARTITIONS)
    application = Application(run, "WordCount", source=source)
    lines = [(USERS[number % 5], f"word{number % 7}", number) for number in range(420)]
    found = application.results_across_a_kill([[(source, lines[:210])], [(source, lines[210:])]], len(lines))
    counts = Counter(value for _, value, _ in lines)
    expect(found, sorted(f"{word}={n + 1}" for word, total in counts.items() for n in range(total)))
    return found


@case(AREA, "a stream joined with a table, killed on its way", clients=[STREAMS])
def stream_and_table(run: Run) -> object:
    """An event meets what the table says of its key; one whose key is not in the table is dropped."""
    events, users = run.create(PARTITIONS), run.create(PARTITIONS, {"cleanup.policy": "compact"})
    application = Application(run, "StreamsJoin", join="table", left=events, right=users)
    known = [(user, f"name of {user}", number) for number, user in enumerate(USERS[:-1])]
    lines = [(USERS[number % 6], f"event{number}", 1_000 + number) for number in range(240)]
    wanted = [f"{event}+name of {user}" for user, event, _ in lines if user != USERS[-1]]
    parts = [[(users, known), (events, lines[:120])], [(events, lines[120:])]]
    found = application.results_across_a_kill(parts, len(wanted))
    expect(found, sorted(wanted))
    return found


@case(AREA, "two streams joined in a window, killed on its way", clients=[STREAMS])
def two_streams(run: Run) -> object:
    """Events of the same key within ten seconds of each other meet, whichever came first; others do not."""
    views, clicks = run.create(PARTITIONS), run.create(PARTITIONS)
    application = Application(run, "StreamsJoin", join="stream", left=views, right=clicks)
    ones = [(USERS[number % 6], f"view{number}", number * 1_000) for number in range(120)]
    others = [(USERS[number % 6], f"click{number}", number * 1_000 + 500) for number in range(120)]
    wanted = [
        f"{view}+{click}"
        for user, view, viewed_ms in ones
        for other, click, clicked_ms in others
        if user == other and abs(viewed_ms - clicked_ms) <= 10_000
    ]
    parts = [[(views, ones[:60]), (clicks, others[:60])], [(views, ones[60:]), (clicks, others[60:])]]
    found = application.results_across_a_kill(parts, len(wanted))
    expect(found, sorted(wanted))
    return found
