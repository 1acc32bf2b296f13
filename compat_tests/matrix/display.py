"""The progress of a run: a line for each client, redrawn in place on a terminal, plain lines elsewhere."""

import shutil
import sys
import textwrap
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TextIO

from compat_tests.matrix.judge import FAILED, NOT_OFFERED, PASSED, Verdict

BAR = 24


@dataclass
class Lane:
    """One client's progress."""

    title: str
    total: int
    counts: Counter[str] = field(default_factory=Counter)
    state: str = "waits"
    began: float = 0
    ended: float = 0

    @property
    def done(self) -> int:
        """How many of its cases were judged."""
        return self.counts.total()

    def line(self, now: float) -> str:
        """As it is shown."""
        filled = BAR * self.done // self.total if self.total else 0
        bar = "█" * filled + "·" * (BAR - filled)
        numbers = f"{self.counts[PASSED]} passed, {self.counts[FAILED]} failed"
        if self.counts[NOT_OFFERED]:
            numbers += f", {self.counts[NOT_OFFERED]} not offered"
        seconds = (self.ended or now) - self.began if self.began else 0
        state = numbers if self.began else self.state
        return f"{self.title[:28]:28} {bar} {self.done:>3}/{self.total:<3} {clock(seconds)}  {state}"


class Display:
    """Told what happens by several threads; shows it."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._lanes: dict[str, Lane] = {}
        self._drawn = 0
        self._began = time.monotonic()
        self._lock = threading.RLock()

    def say(self, words: str) -> None:
        """A line, or several, that stay."""
        with self._lock:
            self._erase()
            print(words, file=self._stream, flush=True)
            self._draw()

    def expect(self, name: str, title: str, total: int) -> None:
        """A client will run so many cases."""
        with self._lock:
            self._lanes[name] = Lane(title, total)

    def lacks(self, name: str, why: str) -> None:
        """A client is not on this machine."""
        lane = self._lanes.pop(name)
        self.say(f"{lane.title[:28]:28} not run: {why}")

    def begins(self, name: str) -> None:
        """A client's first case is under way."""
        with self._lock:
            self._lanes[name].began = time.monotonic()
            if not self._live:
                self.say(f"{self._lanes[name].title}: {self._lanes[name].total} cases ...")
            self._redraw()

    def judged(self, name: str, verdict: Verdict) -> None:
        """A case ended."""
        with self._lock:
            self._lanes[name].counts[verdict.status] += 1
            if verdict.status == FAILED:
                self.say(side_by_side(self._lanes[name].title, verdict))
            self._redraw()

    def ends(self, name: str) -> None:
        """A client is through."""
        with self._lock:
            lane = self._lanes[name]
            lane.ended = time.monotonic()
            if not self._live:
                self.say(f"{lane.line(lane.ended)}   ({self._estimate()})")
            self._redraw()

    def finish(self) -> None:
        """Nothing more is redrawn."""
        with self._lock:
            self._redraw()
            self._live = False
            self._drawn = 0

    def _estimate(self) -> str:
        elapsed = time.monotonic() - self._began
        done = sum(lane.done for lane in self._lanes.values())
        total = sum(lane.total for lane in self._lanes.values())
        left = f", about {clock(elapsed * (total - done) / done)} to go" if 0 < done < total else ""
        return f"{done} of {total} cases in {clock(elapsed)}{left}"

    def _redraw(self) -> None:
        if self._live:
            self._erase()
            self._draw()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        # Before the first has begun, drivers are made ready, and tell of it in lines of their own.
        if not self._live or not any(lane.began for lane in self._lanes.values()):
            return
        width = shutil.get_terminal_size().columns - 1
        now = time.monotonic()
        lines = [lane.line(now)[:width] for lane in self._lanes.values()]
        lines.append(self._estimate()[:width])
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()
        self._drawn = len(lines)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def side_by_side(title: str, verdict: Verdict, width: int | None = None) -> str:
    """A failure with what each broker answered, in two columns."""
    column = ((width or shutil.get_terminal_size((120, 24)).columns) - 3) // 2
    left = _wrapped(verdict.ottla.shown(), column)
    right = _wrapped(verdict.kafka.shown(), column)
    height = max(len(left), len(right))
    left += [""] * (height - len(left))
    right += [""] * (height - len(right))
    head = f"FAILED {title} / {verdict.case.id}: {verdict.why}"
    rows = [("Ottla", "Kafka"), ("-" * column, "-" * column), *zip(left, right, strict=True)]
    return "\n".join([head, *(f"{one:{column}} | {other}".rstrip() for one, other in rows)])


def _wrapped(words: str, column: int, most: int = 40) -> list[str]:
    lines = []
    for line in words.splitlines():
        lines += textwrap.wrap(line, column, subsequent_indent="  ", drop_whitespace=False) or [""]
    return lines if len(lines) <= most else [*lines[:most], f"... {len(lines) - most} lines more"]
