"""`kcat -G`: each member of a group is a command that runs until it is told to leave.

What it reads comes on its standard output, its assignment in words on its standard error. It commits at most by itself,
which it is told not to do.
"""

import re
import subprocess
import threading
import time
from typing import IO, Any

from compat_tests.broker_process import dying_with_its_parent
from compat_tests.matrix.drivers.kcat_driver.command import Command
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, Unsupported, encoded

ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
FORMAT = "%t %p %o %K %S\n%k%s"
CHANGE = re.compile(r"% Group \S+ rebalanced.*?(assign|revoke).*: (.*)")
PLACE = re.compile(r"(\S+) \[(\d+)\]")


class Member:
    """A running `kcat -G`."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            [*dying_with_its_parent(), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._changed = threading.Condition()
        self._records: list[dict[str, Any]] = []
        self.failure = ""
        self._assigned: set[tuple[str, int]] = set()
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def poll(self, wait_ms: int) -> dict[str, Any]:
        """Its assignment, and what it read since it was asked last."""
        deadline = time.monotonic() + wait_ms / 1000
        with self._changed:
            while not self._records and not self.failure and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            records, self._records = self._records, []
            assignment: dict[str, list[int]] = {}
            for topic, partition in sorted(self._assigned):
                assignment.setdefault(topic, []).append(partition)
        return {"assignment": assignment, "records": records}

    def leave(self) -> None:
        """As by Ctrl-C: it leaves the group before it ends."""
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)
        for thread in self._threads:
            thread.join()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                topic, partition, offset, key_size, value_size = line.split()
                key = stream.read(int(key_size)) if int(key_size) >= 0 else None
                value = stream.read(int(value_size)) if int(value_size) >= 0 else None
                place = {"topic": topic.decode(), "partition": int(partition), "offset": int(offset)}
                with self._changed:
                    self._records.append({**place, "key": encoded(key), "value": encoded(value)})
                    self._changed.notify_all()

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                words = line.decode(errors="replace").strip()
                if words.startswith("% ERROR:"):  # with which it ends
                    with self._changed:
                        self.failure = words
                        self._changed.notify_all()
                found = CHANGE.search(words)
                if found is None:
                    continue
                places = {(topic, int(number)) for topic, number in PLACE.findall(found[2])}
                with self._changed:
                    if found[1] == "revoke":
                        self._assigned -= places
                    else:
                        self._assigned |= places
                    self._changed.notify_all()


class Members(Command):
    """Members by the name that a case gives them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._members: dict[str, Member] = {}

    def join(
        self,
        group: str,
        topics: list[str] | None = None,
        pattern: str | None = None,
        assignor: str | None = None,
        protocol: str = "classic",
        remote_assignor: str | None = None,
        instance_id: str | None = None,
        isolation: str | None = None,
        session_ms: int | None = None,
        **named: Any,
    ) -> None:
        if protocol != "classic" or remote_assignor is not None:
            raise Unsupported("this kcat knows the classic protocol only")
        if assignor is not None and assignor not in ASSIGNORS:
            raise Unsupported(f"librdkafka has no assignor {assignor}")
        settings = {
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",  # else it commits what it has stored when it leaves
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": assignor,
            "group.instance.id": instance_id,
            "isolation.level": isolation,
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 1000,
        }
        command = [*self.command, "-G", group, "-E", "-u", "-f", FORMAT]
        for name, value in settings.items():
            command += [] if value is None else ["-X", f"{name}={value}"]
        wanted = topics if pattern is None else [pattern if pattern.startswith("^") else f"^{pattern}"]
        self._members[named["as"]] = Member([*command, *(wanted or [])])

    def poll(self, wait_ms: int, **named: Any) -> dict[str, Any]:
        member = self._members[named["as"]]
        found = member.poll(wait_ms)
        if member.failure and not found["records"]:
            self.fail(member.failure)
        return found

    def commit(self, **_: Any) -> None:
        raise Unsupported("kcat commits by itself or not at all")

    def leave(self, **named: Any) -> None:
        self._members.pop(named["as"]).leave()

    def close_members(self) -> None:
        for name in list(self._members):
            self.leave(**{"as": name})
