"""A log that does everything right, and clients that use it at random: histories that no rule may complain about."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from compat_tests.history.operations import (
    Assign,
    Bounds,
    Commit,
    Committed,
    Init,
    Operation,
    Outcome,
    Poll,
    Send,
    Step,
)

KEYS = ("in-0", "in-1", "out-0", "out-1")


@dataclass
class Partition:
    """Records with their visibility: None while their transaction is open, False when it was aborted."""

    records: list[tuple[str, bool | None]] = field(default_factory=list)

    def append(self, value: str, is_visible: bool | None) -> int:
        self.records.append((value, is_visible))
        return len(self.records) - 1

    @property
    def last_stable_offset(self) -> int:
        unstable = [offset for offset, (_, visible) in enumerate(self.records) if visible is None]
        return unstable[0] if unstable else len(self.records)

    def visible(self, start: int, *, is_read_committed: bool = True) -> list[tuple[int, str]]:
        end = self.last_stable_offset if is_read_committed else len(self.records)
        return [
            (offset, value)
            for offset, (value, visible) in list(enumerate(self.records))[start:end]
            if not is_read_committed or visible
        ]


class Model:
    """The broker, the clients, and the history they leave."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.partitions = {key: Partition() for key in KEYS}
        self.positions: dict[tuple[str, str], int] = {}
        self.copied: dict[str, int] = {}
        self.operations: list[Operation] = []
        self.clock = self.values = 0

    def note(self, process: str, steps: list[Step], outcome: Outcome = Outcome.OK, **more: object) -> None:
        self.clock += 10
        completed_at = None if outcome == Outcome.INFO else self.clock + self.chance.randrange(9)
        number = len(self.operations)
        made = Operation(process, number, tuple(steps), outcome, self.clock, completed_at, **more)  # type: ignore[arg-type]
        self.operations.append(made)

    def produce(self) -> None:
        self.values += 1
        key, value = self.chance.choice(KEYS[:2]), f"v{self.values}"
        outcome = self.chance.choice([Outcome.OK, Outcome.OK, Outcome.INFO, Outcome.FAIL])
        offset = None
        if outcome == Outcome.OK or (outcome == Outcome.INFO and self.chance.random() < 0.5):
            offset = self.partitions[key].append(value, True)
        self.note("producer", [Send(key, value, offset if outcome == Outcome.OK else None)], outcome)

    def copy(self, *, is_last: bool = False) -> None:
        """A transaction of a copier, which may be left open for a while, and may be tried again."""
        source = self.chance.choice(KEYS[:2])
        records = self.partitions[source].visible(self.copied.get(source, 0))
        if not is_last:
            records = records[: self.chance.randrange(1, 4)]
        if not records:
            return
        outcome = Outcome.OK if is_last else self.chance.choice(list(Outcome))
        does_happen = outcome == Outcome.OK or (outcome == Outcome.INFO and self.chance.random() < 0.5)
        steps: list[Step] = [Poll(source, tuple(records))]
        places = []
        for _, value in records:
            key = self.chance.choice(KEYS[2:])
            places.append((key, self.partitions[key].append(value, None), value))
        if self.chance.random() < 0.3:
            self.look()
            self.read("reader")
        for key, offset, value in places:
            self.partitions[key].records[offset] = (value, does_happen)
            is_told = outcome != Outcome.INFO or self.chance.random() < 0.5
            steps.append(Send(key, value, offset if is_told else None))
        steps.append(Commit("g", source, records[-1][0] + 1))
        process = f"copier-{len(self.operations)}"
        self.note(process, [Init(source)])
        self.note(process, steps, outcome, transactional_id=source)
        if does_happen:
            self.copied[source] = records[-1][0] + 1

    def read(self, process: str, *, is_final: bool = False, is_read_committed: bool = True) -> None:
        steps: list[Step] = []
        for key in KEYS:
            start = self.positions.get((process, key), 0)
            if is_final or self.chance.random() < 0.1:
                steps.append(Assign((key,)))
                start = 0
            records = self.partitions[key].visible(start, is_read_committed=is_read_committed)
            if not is_final:
                records = records[: self.chance.randrange(5)]
            if records:
                self.positions[process, key] = records[-1][0] + 1
            elif steps and steps[-1] == Assign((key,)):
                self.positions.pop((process, key), None)
            steps.append(Poll(key, tuple(records)))
        self.note(process, steps, is_final=is_final, is_read_committed=is_read_committed)

    def look(self) -> None:
        steps: list[Step] = [
            Bounds(key, 0, partition.last_stable_offset, len(partition.records))
            for key, partition in self.partitions.items()
        ]
        steps += [Committed("g", key, self.copied.get(key)) for key in KEYS[:2]]
        self.note("looker", steps)


def honest_history(chance: random.Random) -> list[Operation]:
    """A run of fifty steps, at the end of which everything is copied and read to its end."""
    model = Model(chance)
    model.produce()
    for _ in range(50):
        deed = chance.choice(("produce", "produce", "copy", "look", "read"))
        if deed == "produce":
            model.produce()
        elif deed == "copy":
            model.copy()
        elif deed == "look":
            model.look()
        else:
            model.read("reader")
    model.read("dirty", is_read_committed=False)
    for key in KEYS[:2]:
        while model.copied.get(key, 0) < len(model.partitions[key].records):
            model.copy(is_last=True)
    model.read("last", is_final=True)
    model.look()
    return model.operations
