"""Transactions: wholly or not at all, by one producer at a time, and no information in circles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compat_tests.history.operations import Init, Operation, Outcome
from compat_tests.history.view import Anomaly, History


def torn_transaction(history: History) -> Iterator[Anomaly]:
    """If one record of a transaction is read under read_committed, every other is there for whoever reads so far."""
    for operation in history.operations:
        if operation.transactional_id is None or operation.name not in history.seen_at:
            continue
        missing = [
            f"{send.key}@{send.offset} {send.value!r}"
            for send in operation.sends()
            if history.must_have_been_read(send) and not history.was_read(send)
        ]
        if missing:
            yield Anomaly("torn_transaction", operation.name, f"is seen but for {missing}")


def zombie(history: History) -> Iterator[Anomaly]:
    """Once a producer has taken over a transactional id, no older one begins a transaction and commits it."""
    taken: dict[str, list[Operation]] = defaultdict(list)
    for operation in history.operations:
        for step in operation.steps:
            if isinstance(step, Init) and operation.outcome == Outcome.OK:
                taken[step.transactional_id].append(operation)
    for operation in history.operations:
        if operation.transactional_id is None or not history.happened(operation):
            continue
        producers = taken[operation.transactional_id]
        own = [each for each in producers if each.process == operation.process and each.precedes(operation)]
        for other in producers if own else ():
            if other.process != operation.process and own[-1].precedes(other) and other.precedes(operation):
                yield Anomaly("zombie", operation.name, f"happened after {other.name} had fenced it")


def g1c(history: History) -> Iterator[Anomaly]:
    """No transactions have read, directly or by way of others, what the other wrote."""
    reads_of: dict[str, set[str]] = defaultdict(set)
    for read in history.committed_reads:
        writer = history.writer(read)
        reader = read.reader
        if writer is None or writer is reader or None in (writer.transactional_id, reader.transactional_id):
            continue
        if history.happened(reader) and history.happened(writer):
            reads_of[writer.name].add(reader.name)
    for cycle in _cycles(reads_of):
        yield Anomaly(
            "g1c", " -> ".join(cycle), "each has read from the one before, and the first from the last"
        )


def _cycles(edges: dict[str, set[str]]) -> Iterator[list[str]]:
    """Strongly connected parts of more than one node (Tarjan's way, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()  # what is on the stack
    for root in list(edges):
        if root in order:
            continue
        work = [(root, iter(sorted(edges[root])))]
        order[root] = low[root] = len(order)
        stack.append(root)
        waiting.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    part = [stack.pop()]
                    while part[-1] != node:
                        part.append(stack.pop())
                    waiting.difference_update(part)
                    if len(part) > 1:
                        yield part[::-1]
            elif target not in order:
                order[target] = low[target] = len(order)
                stack.append(target)
                waiting.add(target)
                work.append((target, iter(sorted(edges.get(target, ())))))
            elif target in waiting:
                low[node] = min(low[node], order[target])
