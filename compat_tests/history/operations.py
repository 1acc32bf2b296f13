"""Operations as values, and their lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class BadHistory(ValueError):
    """A line is not one of a history; says which."""


class Outcome(StrEnum):
    """How an operation ended."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Send:
    key: str
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    key: str
    records: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Assign:
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    group: str
    key: str
    offset: int


@dataclass(frozen=True, slots=True)
class Committed:
    group: str
    key: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class Bounds:
    key: str
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Init:
    transactional_id: str


Step = Send | Poll | Assign | Subscribe | Commit | Committed | Bounds | Init
STEPS: dict[str, type[Any]] = {
    each.__name__.lower(): each for each in (Send, Poll, Assign, Subscribe, Commit, Committed, Bounds, Init)
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a process, from its beginning to its end."""

    process: str
    number: int
    steps: tuple[Step, ...]
    outcome: Outcome = Outcome.OK
    invoked_at: int = 0
    completed_at: int | None = None
    transactional_id: str | None = None
    is_read_committed: bool = True
    is_final: bool = False

    @property
    def name(self) -> str:
        return f"{self.process}/{self.number}"

    def sends(self) -> Iterator[Send]:
        return (step for step in self.steps if isinstance(step, Send))

    def polls(self) -> Iterator[Poll]:
        return (step for step in self.steps if isinstance(step, Poll))

    def commits(self) -> Iterator[Commit]:
        return (step for step in self.steps if isinstance(step, Commit))

    def precedes(self, other: Operation) -> bool:
        """Whether it had ended when the other began."""
        return self.completed_at is not None and self.completed_at < other.invoked_at


def topic_of(key: str) -> str:
    """The topic of `TOPIC-PARTITION`."""
    return key.rpartition("-")[0]


def parse(lines: Iterable[str]) -> list[Operation]:
    """Operations in the order in which they began."""
    begun: dict[tuple[str, int], dict[str, Any]] = {}
    ended: dict[tuple[str, int], dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            events = begun if event["type"] == "invoke" else ended
            if events is ended:
                Outcome(event["type"])
            place = (event["process"], event["op"])
            if place in events:
                raise BadHistory(f"line {number}: a second {event['type']} of {place}")
            events[place] = event
        except (KeyError, TypeError, ValueError) as error:
            raise BadHistory(f"line {number}: {error!r}: {line.strip()[:200]}") from error
    if orphans := ended.keys() - begun.keys():
        raise BadHistory(f"ended but never began: {sorted(orphans)[:3]}")
    operations = [_operation(event, ended.get(place)) for place, event in begun.items()]
    return sorted(operations, key=lambda each: (each.invoked_at, each.process, each.number))


def _operation(begun: dict[str, Any], ended: dict[str, Any] | None) -> Operation:
    told = ended or {}
    try:
        return Operation(
            process=begun["process"],
            number=begun["op"],
            steps=tuple(_step(each) for each in told.get("steps", begun.get("steps", []))),
            outcome=Outcome(told.get("type", "info")),
            invoked_at=begun["time"],
            completed_at=told.get("time"),
            transactional_id=begun.get("transaction"),
            is_read_committed=begun.get("isolation", "read_committed") == "read_committed",
            is_final=begun.get("final", False),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadHistory(f"{begun.get('process')}/{begun.get('op')}: {error!r}") from error


def _step(words: list[Any]) -> Step:
    step: Step = STEPS[words[0]](*map(_frozen, words[1:]))
    return step


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def step_words(step: Step) -> list[Any]:
    """A step as it stands in a line."""
    return [type(step).__name__.lower(), *(getattr(step, name) for name in step.__slots__)]
