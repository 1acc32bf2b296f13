"""Offsets: those that groups commit, and the bounds of a partition."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator

from compat_tests.history.operations import Bounds, Committed, Operation, Outcome
from compat_tests.history.view import Anomaly, History

NAMES = ("log_start_offset", "last_stable_offset", "high_watermark")


def committed_offset(history: History) -> Iterator[Anomaly]:
    """A group has the offset that was committed last: no older one, and none of an aborted transaction."""
    registers: dict[tuple[str, str], _Register] = {}
    commits: dict[tuple[str, str], list[tuple[Operation, int]]] = defaultdict(list)
    for operation in history.operations:
        for commit in operation.commits():
            commits[commit.group, commit.key].append((operation, commit.offset))
    for reader in history.operations:
        for step in reader.steps:
            if not isinstance(step, Committed) or reader.outcome != Outcome.OK:
                continue
            place = (step.group, step.key)
            if place not in registers:
                registers[place] = _Register(history, commits[place])
            problem = registers[place].problem(reader, step.offset)
            if problem is not None:
                rule, evidence = problem
                yield Anomaly(rule, f"{reader.name} {step.group} {step.key}@{step.offset}", evidence)


class _Register:
    """The commits of one group for one partition."""

    def __init__(self, history: History, commits: list[tuple[Operation, int]]) -> None:
        self._history = history
        self._writers: dict[int, list[Operation]] = defaultdict(list)
        settled = []
        for operation, offset in commits:
            self._writers[offset].append(operation)
            at = history.settled_at(operation)
            if at is not None:
                settled.append((at, operation, offset))
        settled.sort(key=lambda each: each[0])
        self._settled_at = [at for at, _, _ in settled]
        # For each of them, of all that were settled until then, the one that began last.
        self._latest: list[tuple[Operation, int]] = []
        for _, operation, offset in settled:
            before = self._latest[-1] if self._latest else (operation, offset)
            is_later = operation.invoked_at >= before[0].invoked_at
            self._latest.append((operation, offset) if is_later else before)

    def problem(self, reader: Operation, offset: int | None) -> tuple[str, str] | None:
        """The broken rule and the evidence, when this offset was read."""
        before = bisect_left(self._settled_at, reader.invoked_at)
        if offset is None:
            return ("lost_commit", f"{self._latest[before - 1][0].name} had committed") if before else None
        writers = self._writers.get(offset, [])
        able = [each for each in writers if not self._history.did_not_happen(each)]
        if not writers:
            return ("phantom_commit", "is nobody's")
        if not able:
            return ("aborted_commit", f"{writers[0].name} did not happen")
        if not before:
            return None
        latest, latest_offset = self._latest[before - 1]
        if latest_offset == offset:
            return None
        ended = [self._history.settled_at(each) for each in able]
        if any(at is None or at >= latest.invoked_at for at in ended):
            return None
        return ("commit_went_back", f"{latest.name} had committed after that")


def bounds_order(history: History) -> Iterator[Anomaly]:
    """Log start <= last stable offset <= high watermark, and none of them ever goes back."""
    for key, seen in _bounds(history).items():
        for operation, step in seen:
            values = [getattr(step, name) for name in NAMES]
            if values != sorted(values):
                yield Anomaly("bounds_order", f"{operation.name} {key}", f"{NAMES} are {values}")
        for name in NAMES:
            observed = [(operation, getattr(step, name)) for operation, step in seen]
            for operation, step, highest in _highest_before(observed, seen):
                value = getattr(step, name)
                if value < highest:
                    evidence = f"{name} went back from {highest} to {value}"
                    yield Anomaly("bounds_order", f"{operation.name} {key}", evidence)


def read_past_last_stable_offset(history: History) -> Iterator[Anomaly]:
    """read_committed never returned a record at or behind a last stable offset that is seen later."""
    reads: dict[str, list[tuple[Operation, int]]] = defaultdict(list)
    for read in history.committed_reads:
        reads[read.key].append((read.reader, read.offset))
    for key, seen in _bounds(history).items():
        for operation, step, highest in _highest_before(reads[key], seen):
            stable = step.last_stable_offset
            if highest >= stable:
                evidence = f"{highest} was read before the last stable offset was {stable}"
                yield Anomaly("read_past_last_stable_offset", f"{operation.name} {key}", evidence)


def acknowledged_beyond_high_watermark(history: History) -> Iterator[Anomaly]:
    """The high watermark lies behind everything that had been acknowledged before."""
    sends: dict[str, list[tuple[Operation, int]]] = defaultdict(list)
    for operation in history.operations:
        if operation.outcome == Outcome.OK:
            for send in operation.sends():
                if send.offset is not None:
                    sends[send.key].append((operation, send.offset))
    for key, seen in _bounds(history).items():
        for operation, step, highest in _highest_before(sends[key], seen):
            watermark = step.high_watermark
            if highest >= watermark:
                evidence = f"{highest} was acknowledged before the high watermark was {watermark}"
                yield Anomaly("acknowledged_beyond_high_watermark", f"{operation.name} {key}", evidence)


def _bounds(history: History) -> dict[str, list[tuple[Operation, Bounds]]]:
    """What was seen of each key, in the order in which it was asked for."""
    found: dict[str, list[tuple[Operation, Bounds]]] = defaultdict(list)
    for operation in history.operations:
        if operation.outcome == Outcome.OK:
            for step in operation.steps:
                if isinstance(step, Bounds):
                    found[step.key].append((operation, step))
    return found


def _highest_before(
    values: Iterable[tuple[Operation, int]], seen: list[tuple[Operation, Bounds]]
) -> Iterator[tuple[Operation, Bounds, int]]:
    """For each time that bounds were seen, the highest value of what had ended before they were asked for."""
    ended = sorted(
        (operation.completed_at, value) for operation, value in values if operation.completed_at is not None
    )
    highest: int | None = None
    position = 0
    for moment, step in seen:
        while position < len(ended) and ended[position][0] < moment.invoked_at:
            highest = max(ended[position][1], highest if highest is not None else ended[position][1])
            position += 1
        if highest is not None:
            yield moment, step, highest
