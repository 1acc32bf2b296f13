"""A consumer group of real clients under load: who is in it, what they told, and what must be true of it.

At least once means: every record is read, a commit never passes what was read, and no record is read again after a
commit behind it was acknowledged. A record that nobody had committed may be read again. And a member that the machine
left without a moment of time until its session was over may still hand out what it had fetched, before it learns that
its partitions are somebody else's: that reading counts for nothing if the broker refuses its commit, and only then.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from compat_tests.broker_process import dying_with_its_parent
from compat_tests.kafka.jars import (
    compile_java,
    java_executable,
    kafka_classpath,
    older_clients_classpath,
)
from compat_tests.kafka.tools import QUICK_START
from compat_tests.ottla_process import CHECKOUT
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import fetch_offset

PATIENCE_SECONDS = 60
JAVA_SOURCE = Path(__file__).parent / "kafka" / "java" / "GroupMember.java"
JAVA_CLASSPATHS = {"java-4.3": kafka_classpath, "java-3.9": older_clients_classpath}
JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
CONSUMER_PROTOCOL = "consumer"
"""In place of an assignor: a consumer group (KIP-848)."""


@dataclass(slots=True)
class Read:
    nanos: int
    partition: int
    first: int
    next: int
    member: str = ""
    refused: bool = False
    """The broker did not take the commit that followed."""


@dataclass(frozen=True, slots=True)
class Commit:
    nanos: int
    partition: int
    offset: int
    member: str = ""


@dataclass
class Told:
    """All that the members of a group have told so far."""

    reads: list[Read] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Member:
    """A member's process."""

    def __init__(self, group: GroupRun, name: str, command: list[str], errors_path: Path) -> None:
        self.name = name
        self.owned: frozenset[int] = frozenset()
        self.has_left = False
        self._group = group
        self._uncommitted: list[Read] = []
        self._errors_path = errors_path
        with errors_path.open("w") as errors:
            self._process = subprocess.Popen(
                [*dying_with_its_parent(), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Leave the group in good order, and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_SECONDS)
        self._forget()
        assert (code, self.has_left) == (0, True), f"{self.name} ended with {code}: {self.errors()}"

    def kill(self) -> None:
        """kill -9: the group must find out by itself."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._forget()

    def suspend(self) -> None:
        """Leave it without a moment of time, as a machine may that has too much to do."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def errors(self) -> str:
        """The end of what it wrote on standard error."""
        return self._errors_path.read_text(errors="replace")[-2000:]

    def _forget(self) -> None:
        self._thread.join()
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._process.stdout.close()
        self._process.stdin.close()
        if self in self._group.members:
            self._group.members.remove(self)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                continue  # killed amid a line
            nanos, kind, *words = line.split()
            with self._group.changed:
                self._take_in(int(nanos), kind, words)
                self._group.changed.notify_all()

    def _take_in(self, nanos: int, kind: str, words: list[str]) -> None:
        told = self._group.told
        if kind == "owns":
            self.owned = frozenset(map(int, words[0].split(","))) if words else frozenset()
        elif kind == "read":
            partition, first, following = map(int, words)
            self._uncommitted.append(Read(nanos, partition, first, following, self.name))
            told.reads.append(self._uncommitted[-1])
        elif kind == "committed":
            partition, offset = map(int, words)
            told.commits.append(Commit(nanos, partition, offset, self.name))
            self._uncommitted = []
        elif kind == "left":
            self.has_left = True
        else:
            told.failures.append(f"{self.name}: {' '.join(words)}")
            for each in self._uncommitted:
                each.refused = True
            self._uncommitted = []


class GroupRun:
    """A group on one topic."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, *, assignor: str, session_timeout_ms: int = 6000
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group_id = f"{topic}-group"
        self.partitions = partitions
        self.assignor = assignor
        self.session_timeout_ms = session_timeout_ms
        self.members: list[Member] = []
        self.told = Told()
        self.changed = threading.Condition()
        self._scratch = tempfile.TemporaryDirectory(prefix="group-")
        self._joined = 0

    def join(self, client: str, instance_id: str = "", assignor: str = "") -> Member:
        """Start a member on one of the libraries, or `java-4.3` or `java-3.9`."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group_id,
            "topic": self.topic,
            **({"group.instance.id": instance_id} if instance_id else {}),
        }
        assignor = assignor or self.assignor
        is_java = client in JAVA_CLASSPATHS
        if assignor == CONSUMER_PROTOCOL:
            settings["group.protocol"] = "consumer"
        else:
            settings["session.timeout.ms"] = str(self.session_timeout_ms)
            settings["heartbeat.interval.ms"] = "300"
            strategy = (
                f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[assignor]}" if is_java else assignor
            )
            settings["partition.assignment.strategy"] = strategy
        if is_java:
            settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
            classpath = f"{_java_classes()}{os.pathsep}{JAVA_CLASSPATHS[client]()}"
            command = [java_executable(), "-Xmx128m", *QUICK_START, "-cp", classpath, "GroupMember"]
        else:
            command = [sys.executable, "-m", "compat_tests.group_members", client]
        command += [f"{name}={value}" for name, value in settings.items()]
        self._joined += 1
        errors_path = Path(self._scratch.name) / f"member-{self._joined}.txt"
        member = Member(self, f"{client} {instance_id or self._joined}", command, errors_path)
        self.members.append(member)
        return member

    # Waiting -----------------------------------------------------------------------------------------------

    def wait_until_shared(self) -> None:
        """Until every partition has one owner, and every member owns one if there are enough."""
        self._wait("shared", self._is_shared)

    def wait_for_progress(self, records: int = 100) -> None:
        """Until every partition is committed so much further than now."""
        with self.changed:
            goals = [self.committed(partition) + records for partition in range(self.partitions)]
        self._wait(f"committed to {goals}", lambda: self._has_committed(goals))

    def wait_for_end(self, ends: list[int]) -> None:
        """Until everything up to these offsets is committed."""
        self._wait(f"committed to {ends}", lambda: self._has_committed(ends))

    def committed(self, partition: int) -> int:
        return max((each.offset for each in self.told.commits if each.partition == partition), default=0)

    def _has_committed(self, goals: list[int]) -> bool:
        return all(self.committed(partition) >= goal for partition, goal in enumerate(goals))

    def _is_shared(self) -> bool:
        owned = [partition for member in self.members for partition in member.owned]
        idle = sum(not member.owned for member in self.members)
        return sorted(owned) == list(range(self.partitions)) and idle == max(
            0, len(self.members) - self.partitions
        )

    def _wait(self, goal: str, is_reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self.changed:
            while not is_reached():
                assert self.changed.wait(deadline - time.monotonic()), f"not {goal}: {self._state()}"

    def _state(self) -> str:
        lines = [f"{each.name} owns {sorted(each.owned)} {each.errors()[-300:]}" for each in self.members]
        lines.append(f"committed {[self.committed(partition) for partition in range(self.partitions)]}")
        return "\n".join(lines + self.told.failures[-5:])

    # What must be true -------------------------------------------------------------------------------------

    def check(self, ends: list[int]) -> None:
        """Hold what was told against at least once, when everything up to `ends` has been read."""
        for partition, end in enumerate(ends):
            reads = sorted(
                (each for each in self.told.reads if each.partition == partition), key=lambda each: each.nanos
            )
            commits = sorted(
                (each for each in self.told.commits if each.partition == partition),
                key=lambda each: each.nanos,
            )
            skipped = gaps(reads, end)
            assert not skipped, f"never read in partition {partition}: {skipped}"
            again = read_after_commit(reads, commits)
            assert not again, f"read after its commit: {again}\n{_around(again[0], reads, commits)}"
        with RawClient.to(self.bootstrap) as raw:
            stored = [
                fetch_offset(raw, self.group_id, self.topic, partition).committed_offset
                for partition in range(self.partitions)
            ]
        assert stored == ends

    def close(self) -> None:
        """Kill who is left over."""
        for member in list(self.members):
            member.kill()
        self._scratch.cleanup()


def gaps(reads: list[Read], end: int) -> list[tuple[int, int]]:
    """Ranges of offsets up to `end` that nobody read."""
    found = []
    position = 0
    for each in sorted(reads, key=lambda each: each.first):
        if each.first > position:
            found.append((position, each.first))
        position = max(position, each.next)
    return found if position >= end else [*found, (position, end)]


def read_after_commit(reads: list[Read], commits: list[Commit]) -> list[Read]:
    """Reads of one partition, in the order of time, of what had been committed before; but for those of members that
    were in the group no more."""
    found = []
    committed = number = 0
    for each in reads:
        while number < len(commits) and commits[number].nanos < each.nanos:
            committed = max(committed, commits[number].offset)
            number += 1
        if each.first < committed and not each.refused:
            found.append(each)
    return found


def _around(moment: Read, reads: list[Read], commits: list[Commit]) -> str:
    """What else was told of the partition at that time."""
    events: list[Read | Commit] = sorted([*reads, *commits], key=lambda each: each.nanos)
    place = events.index(moment)
    return "\n".join(map(str, events[max(0, place - 8) : place + 4]))


@functools.cache
def _java_classes() -> str:
    """The compiled member, for both versions of the clients: compiled with the older one."""
    classes = tempfile.mkdtemp(prefix="group-member-")
    atexit.register(shutil.rmtree, classes, ignore_errors=True)
    compile_java(JAVA_SOURCE, Path(classes), older_clients_classpath())
    return classes
