"""Offsets: those that groups commit, and the bounds of a partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compat_tests.history.operations import Bounds, Commit, Committed, Operation, Outcome
from compat_tests.history.view import Anomaly, History


def committed_offset(history: History) -> Iterator[Anomaly]:
    """A group has the offset that was committed last: no older one, and none of an aborted transaction."""
    commits: dict[tuple[str, str], list[tuple[Operation, Commit]]] = defaultdict(list)
    for operation in history.operations:
        for commit in operation.commits():
            commits[commit.group, commit.key].append((operation, commit))
    for reader in history.operations:
        for step in reader.steps:
            if isinstance(step, Committed) and reader.outcome == Outcome.OK:
                problem = _problem(history, reader, step, commits[step.group, step.key])
                if problem:
                    rule, evidence = problem
                    yield Anomaly(rule, f"{reader.name} {step.group} {step.key}@{step.offset}", evidence)


def _problem(
    history: History, reader: Operation, step: Committed, commits: list[tuple[Operation, Commit]]
) -> tuple[str, str] | None:
    settled = [
        (operation, commit, at)
        for operation, commit in commits
        if (at := history.settled_at(operation)) is not None and at < reader.invoked_at
    ]
    if step.offset is None:
        return ("lost_commit", f"{settled[-1][0].name} had committed") if settled else None
    same = [operation for operation, commit in commits if commit.offset == step.offset]
    able = [each for each in same if not history.did_not_happen(each)]
    if not able:
        return (
            ("aborted_commit", f"{same[0].name} did not happen")
            if same
            else ("phantom_commit", "is nobody's")
        )
    for writer in able:
        ended_at = history.settled_at(writer)
        newer = [
            operation
            for operation, commit, _ in settled
            if commit.offset != step.offset and ended_at is not None and ended_at < operation.invoked_at
        ]
        if not newer:
            return None
    return ("commit_went_back", f"{newer[-1].name} had committed after that")


def bounds_order(history: History) -> Iterator[Anomaly]:
    """Log start <= last stable offset <= high watermark, and none of them ever goes back."""
    seen = _bounds(history)
    names = ("log_start_offset", "last_stable_offset", "high_watermark")
    for operation, step in seen:
        values = [getattr(step, name) for name in names]
        if values != sorted(values):
            yield Anomaly("bounds_order", f"{operation.name} {step.key}", f"{names} are {values}")
    for name in names:
        for key in sorted({step.key for _, step in seen}):
            observed = [(operation, getattr(step, name)) for operation, step in seen if step.key == key]
            for operation, highest in _highest_before(observed, [each for each, _ in observed]):
                value = next(value for each, value in observed if each is operation)
                if value < highest:
                    evidence = f"{name} went back from {highest} to {value}"
                    yield Anomaly("bounds_order", f"{operation.name} {key}", evidence)


def read_past_last_stable_offset(history: History) -> Iterator[Anomaly]:
    """read_committed never returned a record at or behind a last stable offset that is seen later."""
    seen = _bounds(history)
    for key in sorted({step.key for _, step in seen}):
        reads = [(read.reader, read.offset) for read in history.committed_reads if read.key == key]
        later = {operation.name: step for operation, step in seen if step.key == key}
        for operation, highest in _highest_before(reads, [each for each, step in seen if step.key == key]):
            stable = later[operation.name].last_stable_offset
            if highest >= stable:
                evidence = f"{highest} was read before the last stable offset was {stable}"
                yield Anomaly("read_past_last_stable_offset", f"{operation.name} {key}", evidence)


def acknowledged_beyond_high_watermark(history: History) -> Iterator[Anomaly]:
    """The high watermark lies behind everything that had been acknowledged before."""
    seen = _bounds(history)
    for key in sorted({step.key for _, step in seen}):
        sends = [
            (operation, send.offset)
            for operation in history.operations
            if operation.outcome == Outcome.OK
            for send in operation.sends()
            if send.key == key and send.offset is not None
        ]
        later = {operation.name: step for operation, step in seen if step.key == key}
        for operation, highest in _highest_before(sends, [each for each, step in seen if step.key == key]):
            watermark = later[operation.name].high_watermark
            if highest >= watermark:
                evidence = f"{highest} was acknowledged before the high watermark was {watermark}"
                yield Anomaly("acknowledged_beyond_high_watermark", f"{operation.name} {key}", evidence)


def _bounds(history: History) -> list[tuple[Operation, Bounds]]:
    return [
        (operation, step)
        for operation in history.operations
        if operation.outcome == Outcome.OK
        for step in operation.steps
        if isinstance(step, Bounds)
    ]


def _highest_before(
    values: list[tuple[Operation, int]], moments: list[Operation]
) -> Iterator[tuple[Operation, int]]:
    """For each moment the highest value of what had ended before it began."""
    ended = sorted(
        ((operation.completed_at, value) for operation, value in values if operation.completed_at is not None)
    )
    highest: int | None = None
    position = 0
    for moment in sorted(moments, key=lambda each: each.invoked_at):
        while position < len(ended) and ended[position][0] < moment.invoked_at:
            highest = max(ended[position][1], highest if highest is not None else ended[position][1])
            position += 1
        if highest is not None:
            yield moment, highest
