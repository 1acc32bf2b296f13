"""Writes a history while it happens: each line is out before the client may go on."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat_tests.history.operations import Operation, Outcome, Step, parse, step_words


class Recorder:
    """A history in memory, and in a file if it has one; any thread may write."""

    def __init__(self, path: Path | None = None) -> None:
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._path = path

    def begin(
        self, process: str, *steps: Step, transactional_id: str | None = None, **more: Any
    ) -> Happening:
        """An operation begins; it must be ended, or nobody knows how it went."""
        happening = Happening(self, process, next(self._numbers))
        transaction = {"transaction": transactional_id} if transactional_id is not None else {}
        happening.say("invoke", steps, **transaction, **more)
        return happening

    def happened(self, process: str, *steps: Step, **more: Any) -> None:
        """An operation of which nothing was known before it was over."""
        self.begin(process, **more).end(Outcome.OK, *steps)

    def operations(self) -> list[Operation]:
        """What has been written so far."""
        with self._lock:
            return parse(self._lines)

    def save(self, path: Path) -> None:
        """Keep what has been written so far for `python -m compat_tests.history`."""
        with self._lock:
            path.write_text("".join(line + "\n" for line in self._lines))

    def write(self, event: dict[str, Any]) -> None:
        line = json.dumps(event)
        with self._lock:
            self._lines.append(line)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(line + "\n")


class Happening:
    """An operation that has begun."""

    def __init__(self, recorder: Recorder, process: str, number: int) -> None:
        self._recorder, self._process, self._number = recorder, process, number

    def end(self, outcome: Outcome, *steps: Step) -> None:
        """How it ended; with no steps, those it began with."""
        self.say(outcome.value, steps)

    def say(self, kind: str, steps: Iterable[Step], **more: Any) -> None:
        words = [step_words(each) for each in steps]
        self._recorder.write(
            {
                "process": self._process,
                "op": self._number,
                "time": time.monotonic_ns(),
                "type": kind,
                **more,
                **({"steps": words} if words else {}),
            }
        )
