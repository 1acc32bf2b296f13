"""Consumers that join and are killed under load: nothing is skipped, and nothing is read again after its commit."""

import json
import subprocess
import sys
import threading
from typing import Any, Self

import pytest
from confluent_kafka import Producer

from compat_tests.conftest import NewTopic
from compat_tests.group_readers import PATIENCE_SECONDS

PARTITIONS = 6


class Events:
    """What all members wrote."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lines: list[list[Any]] = []
        self._values: set[str] = set()

    def follow(self, output: Any) -> None:
        for line in output:
            if not line.endswith("\n"):
                return  # killed while it wrote
            with self._changed:
                self._lines.append(json.loads(line))
                if self._lines[-1][1] == "read":
                    self._values.add(self._lines[-1][3])
                self._changed.notify_all()

    def wait_for_more(self, count: int) -> None:
        with self._changed:
            goal = len(self._values) + count
            assert self._changed.wait_for(lambda: len(self._values) >= goal, PATIENCE_SECONDS)

    def wait_for_all(self, values: set[str]) -> None:
        with self._changed:
            found = self._changed.wait_for(lambda: self._values >= values, PATIENCE_SECONDS)
            assert found, f"never read: {sorted(values - self._values)[:10]}"

    def read_after_commit(self) -> list[tuple[str, int]]:
        """Records that were read although their offset had been committed before."""
        committed: dict[str, int] = {}
        again = []
        for _, kind, positions, _ in sorted(self._lines):
            for partition, offset in positions.items():
                if kind == "commit":
                    committed[partition] = max(offset, committed.get(partition, 0))
                elif offset < committed.get(partition, 0):
                    again.append((partition, offset))
        return again


class Trickle:
    """A few records every moment, until the block ends."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, args=(bootstrap, topic))

    def _produce(self, bootstrap: str, topic: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        while not self._stop.wait(0.05):
            for partition in range(PARTITIONS):
                value = f"record-{len(self.values)}"
                producer.produce(topic, value, partition=partition)
                self.values.add(value)
            assert producer.flush(PATIENCE_SECONDS) == 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()


class KillableMember:
    def __init__(self, events: Events, *arguments: str) -> None:
        command = [sys.executable, "-m", "compat_tests.group_member", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._follower = threading.Thread(target=events.follow, args=(self.process.stdout,), daemon=True)
        self._follower.start()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._end()

    def _end(self) -> None:
        self.process.wait(PATIENCE_SECONDS)
        self._follower.join(PATIENCE_SECONDS)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_nothing_is_skipped(bootstrap: str, new_topic: NewTopic, assignor: str) -> None:
    """Four members, two of them killed and two more joining while records come in."""
    topic = new_topic(PARTITIONS)
    events = Events()
    arguments = (bootstrap, topic, f"{topic}-group", assignor)
    members = [KillableMember(events, *arguments) for _ in range(4)]
    with Trickle(bootstrap, topic) as trickle:
        events.wait_for_more(100)
        members.pop(0).kill()
        events.wait_for_more(100)
        members.append(KillableMember(events, *arguments))
        events.wait_for_more(100)
        members.pop(0).kill()
        members.append(KillableMember(events, *arguments))
        events.wait_for_more(100)
    events.wait_for_all(trickle.values)
    for member in members:
        member.stop()
    assert events.read_after_commit() == []
