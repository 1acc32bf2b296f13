"""A history as the rules look at it: who wrote what, what was read, and which transactions happened.

Most transactions end with an answer. Of one that nobody knows about, anything of it that was read under
read_committed proves that it happened; when polls at the end saw nothing of it, it did not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from compat_tests.history.operations import (
    Bounds,
    Operation,
    Outcome,
    Send,
    topic_of,
)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A broken rule: which, of what, and the evidence."""

    rule: str
    subject: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.evidence}"


@dataclass(frozen=True, slots=True)
class Read:
    """One record that came to a consumer."""

    key: str
    offset: int
    value: str
    reader: Operation


class History:
    """All operations, and what follows from them."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.operations = sorted(operations, key=lambda each: each.invoked_at)

    # Reading -----------------------------------------------------------------------------------------------

    @cached_property
    def reads(self) -> list[Read]:
        return [
            Read(poll.key, offset, value, operation)
            for operation in self.operations
            for poll in operation.polls()
            for offset, value in poll.records
        ]

    @cached_property
    def committed_reads(self) -> list[Read]:
        """What read_committed let through."""
        return [read for read in self.reads if read.reader.is_read_committed]

    @cached_property
    def read_places(self) -> set[tuple[str, int, str]]:
        return {(read.key, read.offset, read.value) for read in self.reads}

    @cached_property
    def read_values(self) -> set[tuple[str, str]]:
        return {(read.key, read.value) for read in self.reads}

    @cached_property
    def highest_read(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for read in self.reads:
            found[read.key] = max(read.offset, found.get(read.key, -1))
        return found

    @cached_property
    def finally_polled(self) -> set[str]:
        """Keys that were read to their end when all was over."""
        return {poll.key for each in self.operations if each.is_final for poll in each.polls()}

    @cached_property
    def log_starts(self) -> dict[str, int]:
        """What is below was deleted by the broker, as it may."""
        found: dict[str, int] = {}
        for operation in self.operations:
            for step in operation.steps:
                if isinstance(step, Bounds):
                    found[step.key] = max(step.log_start_offset, found.get(step.key, 0))
        return found

    def was_read(self, send: Send) -> bool:
        if send.offset is None:
            return (send.key, send.value) in self.read_values
        return (send.key, send.offset, send.value) in self.read_places

    def must_have_been_read(self, send: Send) -> bool:
        """Whether somebody read beyond it, or to the end when all was over."""
        if send.offset is not None and send.offset < self.log_starts.get(send.key, 0):
            return False
        if send.key in self.finally_polled:
            return True
        return send.offset is not None and send.offset <= self.highest_read.get(send.key, -1)

    # Writing -----------------------------------------------------------------------------------------------

    @cached_property
    def writers(self) -> dict[tuple[str, str], list[tuple[Operation, Send]]]:
        """By key and value; more than one if it was tried again."""
        found: dict[tuple[str, str], list[tuple[Operation, Send]]] = defaultdict(list)
        for operation in self.operations:
            for send in operation.sends():
                found[send.key, send.value].append((operation, send))
        return found

    @cached_property
    def written_topics(self) -> set[str]:
        return {topic_of(key) for key, _ in self.writers}

    def possible_writers(self, read: Read) -> list[Operation]:
        """Whose this record is: those who were told its offset, else those who were told none."""
        tried = self.writers.get((read.key, read.value), [])
        exact = [operation for operation, send in tried if send.offset == read.offset]
        return exact or [operation for operation, send in tried if send.offset is None]

    def writer(self, read: Read) -> Operation | None:
        """The one who wrote this record, if only one can have."""
        able = [each for each in self.possible_writers(read) if each.outcome != Outcome.FAIL]
        return able[0] if len(able) == 1 else None

    @cached_property
    def seen_at(self) -> dict[str, int]:
        """When something of an operation was first read under read_committed, by the operation's name."""
        found: dict[str, int] = {}
        for read in self.committed_reads:
            writer = self.writer(read)
            when = read.reader.completed_at
            if writer is not None and when is not None:
                found[writer.name] = min(when, found.get(writer.name, when))
        return found

    def settled_at(self, operation: Operation) -> int | None:
        """Since when it is certain that it happened; None if it is not."""
        if operation.outcome == Outcome.OK:
            return operation.completed_at
        return self.seen_at.get(operation.name) if operation.outcome == Outcome.INFO else None

    def happened(self, operation: Operation) -> bool:
        return self.settled_at(operation) is not None

    def did_not_happen(self, operation: Operation) -> bool:
        """Whether it failed, or is a transaction of which nothing was there in the end."""
        if operation.outcome != Outcome.INFO:
            return operation.outcome == Outcome.FAIL
        sends = list(operation.sends())
        return (
            operation.transactional_id is not None
            and bool(sends)
            and all(send.key in self.finally_polled for send in sends)
            and not any(self.was_read(send) for send in sends)
        )

    # Order -------------------------------------------------------------------------------------------------

    def versions(self, *, is_read_committed: bool) -> dict[str, dict[int, int]]:
        """For each key its offsets with a visible record, numbered without gaps."""
        offsets: dict[str, set[int]] = defaultdict(set)
        for read in self.committed_reads if is_read_committed else self.reads:
            offsets[read.key].add(read.offset)
        for operation in self.operations:
            if self.happened(operation):
                for send in operation.sends():
                    if send.offset is not None:
                        offsets[send.key].add(send.offset)
        return {
            key: {offset: number for number, offset in enumerate(sorted(found))}
            for key, found in offsets.items()
        }
