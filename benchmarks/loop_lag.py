"""How late Ottla's event loop was, as the broker itself tells when it is asked by a signal."""

import re
import signal
import time
from dataclasses import dataclass, field

from compat_tests.broker_process import BrokerProcess
from compat_tests.ottla_process import OttlaProcess

PATIENCE_SECONDS = 10
FIGURES = (
    "p50_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
    "work_p999_ms",
    "work_max_ms",
    "blocked_max_ms",
    "garbage_max_ms",
)
LONG_PASSES, SECONDS = "long_passes", "seconds"
_LINE = re.compile(r"loop lag (.*)")
_FIGURE = re.compile(r"(\w+)=([\d.]+)")
_LONGEST_WORK = re.compile(r"longest_work=(\S+)")
_PLACES_SHOWN = 2  # the innermost
_NOWHERE = "-"


@dataclass(frozen=True, slots=True)
class Lag:
    """How late the loop was in a stretch of time, and what it was doing when it worked longest."""

    seconds: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    longest_work: str = ""
    long_passes: float = 0.0


class LagOfTurns:
    """How late it was in several stretches together: the worst of what is the worst already, and of a percentile the
    mean, in which a stretch counts by its length."""

    def __init__(self) -> None:
        self._turns: list[Lag] = []

    def add(self, turn: Lag) -> None:
        """One more; nothing if the broker did not tell."""
        if turn.figures:
            self._turns.append(turn)

    def summary(self) -> tuple[dict[str, float], str]:
        """The figures, and what the loop was doing when it worked longest of all."""
        if not self._turns:
            return {}, ""
        figures = {name: self._figure(name) for name in FIGURES}
        figures[LONG_PASSES] = sum(turn.long_passes for turn in self._turns)
        figures[SECONDS] = sum(turn.seconds for turn in self._turns)
        longest = max(self._turns, key=lambda turn: turn.figures["work_max_ms"])
        return figures, longest.longest_work

    def _figure(self, name: str) -> float:
        if "max" in name:
            return max(turn.figures[name] for turn in self._turns)
        seconds = sum(turn.seconds for turn in self._turns)
        return sum(turn.figures[name] * turn.seconds for turn in self._turns) / max(seconds, 1e-9)


def read_lag(broker: BrokerProcess) -> Lag:
    """How late the loop was since the last call. Nothing the first time, from when on it is measured, and for a broker
    that does not tell."""
    if not isinstance(broker, OttlaProcess):
        return Lag()
    seen = len(_lines(broker))
    broker.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(lines := _lines(broker)) == seen:
        assert time.monotonic() < deadline, "the broker does not tell how late its loop is"
        time.sleep(0.01)
    figures = {name: float(value) for name, value in _FIGURE.findall(lines[-1])}
    if "seconds" not in figures:
        return Lag()
    work = _LONGEST_WORK.search(lines[-1])
    return Lag(
        figures[SECONDS],
        {name: figures[name] for name in FIGURES},
        work[1] if work else "",
        figures[LONG_PASSES],
    )


def places(longest_work: str) -> str:
    """The innermost functions of what the loop was seen doing; nothing if it was too short to be seen."""
    if longest_work in ("", _NOWHERE):
        return ""
    return " → ".join(f"`{place}`" for place in longest_work.split("/")[-_PLACES_SHOWN:])


def _lines(broker: BrokerProcess) -> list[str]:
    # A line that is being written has no end yet.
    return _LINE.findall(broker.log_path.read_text(errors="replace").rpartition("\n")[0])
