"""The state of a share partition: runs of records from the start offset to the last that was ever delivered.

`runs` cover everything from `start_offset` up to `next_offset` without gaps. What is in front of the start offset is
done; what is from `next_offset` on nobody has seen. Acquiring is not persisted: after a restart such records are
available again, as in Kafka. Everything else gives `StateBatch`es to keep, and happens for good when `settle` is
called after they were written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.group_coordinator.share_partition.runs import TERMINAL, InFlightBatch, RecordState, Run


class StateBatch(NamedTuple):
    """Records whose state changed, as it is kept."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class SharePartition:
    """Runs of records and where they start."""

    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        self.start_offset = start_offset
        self.next_offset = start_offset
        self.runs: list[Run] = []
        for batch in sorted(batches):
            self._load(batch)
        self.settle()

    def _load(self, batch: StateBatch) -> None:
        first = max(batch.first_offset, self.next_offset)
        if batch.last_offset < first:
            return
        if first > self.next_offset:  # delivered and not acknowledged when the state was kept
            self._add(first - 1, RecordState.AVAILABLE, 0)
        self._add(batch.last_offset, RecordState(batch.delivery_state), batch.delivery_count)

    def _add(
        self, last: int, state: RecordState, delivery_count: int, batch: InFlightBatch | None = None
    ) -> Run:
        first = self.next_offset
        run = Run(first, last, state, delivery_count, batch or InFlightBatch(first, last))
        self.runs.append(run)
        self.next_offset = last + 1
        return run

    # Looking -----------------------------------------------------------------------------------------------

    @property
    def in_flight_count(self) -> int:
        return self.next_offset - self.start_offset

    @property
    def fetch_offset(self) -> int:
        """Where to read: the first available record, or the first that nobody has seen."""
        for run in self.runs:
            if run.state is RecordState.AVAILABLE:
                return run.first
        return self.next_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many records from the start offset on are done."""
        return sum(len(run) for run in self.runs if run.state in TERMINAL)

    @property
    def next_lock_ends_ms(self) -> int | None:
        """When the first lock runs out."""
        return min(
            (run.locked_until_ms for run in self.runs if run.state is RecordState.ACQUIRED), default=None
        )

    def index_of(self, offset: int) -> int:
        """The place of the run that holds the offset, or of the one behind which it would be."""
        return bisect_right(self.runs, offset, key=lambda run: run.first) - 1

    def between(self, first: int, last: int) -> Iterator[Run]:
        """Runs that have something of this range."""
        for index in range(max(0, self.index_of(first)), len(self.runs)):
            run = self.runs[index]
            if run.first > last:
                return
            if run.last >= first:
                yield run

    # Changing ----------------------------------------------------------------------------------------------

    def cut(self, first: int, last: int) -> list[Run]:
        """Runs that are exactly this range, cut from larger ones where need be."""
        for offset in (first, last + 1):
            index = self.index_of(offset)
            if 0 <= index < len(self.runs):
                run = self.runs[index]
                if run.first < offset <= run.last:
                    self.runs.insert(index + 1, run.cut_before(offset))
        return list(self.between(first, last))

    def extend(
        self, last: int, state: RecordState, delivery_count: int, batch: InFlightBatch | None = None
    ) -> Run:
        """What comes next is in flight too, in a batch of its own unless one is named."""
        return self._add(last, state, delivery_count, batch)

    def join(self, runs: Iterable[Run]) -> list[Run]:
        """The same records in as few runs as can be."""
        joined: list[Run] = []
        gone: set[int] = set()
        for run in runs:
            if joined and joined[-1].is_continued_by(run):
                joined[-1].last = run.last
                gone.add(id(run))
            else:
                joined.append(run)
        if gone:
            self.runs = [run for run in self.runs if id(run) not in gone]
        return joined

    def start_at(self, offset: int) -> None:
        """Nothing in front of the offset is there any more."""
        if offset <= self.start_offset:
            return
        self.cut(offset, max(offset, self.next_offset - 1))
        self.runs = [run for run in self.runs if run.first >= offset]
        self.start_offset = offset
        self.next_offset = max(self.next_offset, offset)

    def settle(self) -> None:
        """Move the start offset behind what is done."""
        done = 0
        while done < len(self.runs) and self.runs[done].state in TERMINAL:
            done += 1
        if done:
            self.start_offset = self.runs[done - 1].last + 1
            del self.runs[:done]


def state_batches(runs: Iterable[Run]) -> list[StateBatch]:
    """What to keep of these runs; neighbours of one kind together."""
    kept: list[StateBatch] = []
    for run in runs:
        batch = StateBatch(run.first, run.last, run.state, run.delivery_count)
        if kept and kept[-1].last_offset + 1 == run.first and kept[-1][2:] == batch[2:]:
            batch = batch._replace(first_offset=kept.pop().first_offset)
        kept.append(batch)
    return kept


def is_covered(runs: Sequence[Run], first: int, last: int) -> bool:
    """Do these runs hold every offset of the range?"""
    return bool(runs) and runs[0].first <= first and runs[-1].last >= last
