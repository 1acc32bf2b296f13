"""What became of writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compat_tests.history.operations import Outcome, topic_of
from compat_tests.history.view import Anomaly, History


def inconsistent_offsets(history: History) -> Iterator[Anomaly]:
    """An offset of a partition holds one value, whoever is told of it."""
    values: dict[tuple[str, int], set[str]] = defaultdict(set)
    for operation in history.operations:
        for send in operation.sends():
            if send.offset is not None:
                values[send.key, send.offset].add(send.value)
    for read in history.reads:
        values[read.key, read.offset].add(read.value)
    for (key, offset), found in values.items():
        if len(found) > 1:
            yield Anomaly("inconsistent_offsets", f"{key}@{offset}", f"holds {sorted(found)}")


def duplicate(history: History) -> Iterator[Anomaly]:
    """A value stands at one place of its topic: idempotent producers write once, transactions happen once."""
    places: dict[tuple[str, str], set[tuple[str, int]]] = defaultdict(set)
    for read in history.reads:
        is_transactional = any(each.transactional_id for each in history.possible_writers(read))
        if read.reader.is_read_committed or not is_transactional:
            places[topic_of(read.key), read.value].add((read.key, read.offset))
    for (topic, value), found in places.items():
        if len(found) > 1:
            yield Anomaly("duplicate", f"{topic} {value!r}", f"stands at {sorted(found)}")


def lost_write(history: History) -> Iterator[Anomaly]:
    """What is acknowledged and lies below what somebody has read was read by somebody."""
    for operation in history.operations:
        if not history.happened(operation):
            continue
        for send in operation.sends():
            reached = send.offset is not None and send.offset <= history.highest_read.get(send.key, -1)
            if reached and history.must_have_been_read(send) and not history.was_read(send):
                evidence = f"of {operation.name} was passed over; {history.highest_read[send.key]} was read"
                yield Anomaly("lost_write", f"{send.key}@{send.offset} {send.value!r}", evidence)


def unseen(history: History) -> Iterator[Anomaly]:
    """What is acknowledged was read by somebody once everything was read to the end."""
    for operation in history.operations:
        if operation.outcome != Outcome.OK:
            continue
        for send in operation.sends():
            is_beyond = send.offset is None or send.offset > history.highest_read.get(send.key, -1)
            if is_beyond and history.must_have_been_read(send) and not history.was_read(send):
                evidence = f"of {operation.name} was acknowledged and never read"
                yield Anomaly("unseen", f"{send.key}@{send.offset} {send.value!r}", evidence)


def nonmonotonic_send(history: History) -> Iterator[Anomaly]:
    """A process's records stand in a partition in the order in which it sent them."""
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for operation in history.operations:
        for send in operation.sends():
            if send.offset is None:
                continue
            before = last.get((operation.process, send.key))
            if before is not None and send.offset <= before[0]:
                evidence = f"{send.value!r}@{send.offset} was sent after {before[1]!r}@{before[0]}"
                yield Anomaly("nonmonotonic_send", f"{operation.name} {send.key}", evidence)
            last[operation.process, send.key] = (send.offset, send.value)


def missing_copy(history: History, source: str, target: str) -> Iterator[Anomaly]:
    """Every value that was read in the source topic, or acknowledged there, was read in the target topic."""
    wanted = {read.value for read in history.committed_reads if topic_of(read.key) == source}
    wanted |= {
        send.value
        for operation in history.operations
        if history.happened(operation)
        for send in operation.sends()
        if topic_of(send.key) == source
    }
    found = {read.value for read in history.committed_reads if topic_of(read.key) == target}
    for value in sorted(wanted - found):
        yield Anomaly("missing_copy", f"{target} {value!r}", f"stands in {source} only")
