"""All rules over a history, and the figures that are no rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from compat_tests.history.operations import Operation, Outcome
from compat_tests.history.rules.offsets import (
    acknowledged_beyond_high_watermark,
    bounds_order,
    committed_offset,
    read_past_last_stable_offset,
)
from compat_tests.history.rules.reads import aborted_read, phantom_read, poll_order, precommitted_read
from compat_tests.history.rules.transactions import g1c, torn_transaction, zombie
from compat_tests.history.rules.writes import (
    duplicate,
    inconsistent_offsets,
    lost_write,
    missing_copy,
    nonmonotonic_send,
    unseen,
)
from compat_tests.history.view import Anomaly, History

Rule = Callable[[History], Iterator[Anomaly]]
RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        inconsistent_offsets,
        duplicate,
        lost_write,
        unseen,
        nonmonotonic_send,
        phantom_read,
        aborted_read,
        precommitted_read,
        poll_order,
        torn_transaction,
        zombie,
        g1c,
        committed_offset,
        bounds_order,
        read_past_last_stable_offset,
        acknowledged_beyond_high_watermark,
    )
}


def check(
    operations: Iterable[Operation],
    *,
    without: Collection[str] = (),
    copies: Iterable[tuple[str, str]] = (),
) -> list[Anomaly]:
    """Everything that is wrong. `without` names rules that do not hold here, as `duplicate` does not for producers
    without idempotence; `copies` are pairs of topics, of which the second has every value of the first."""
    history = History(operations)
    rules = [rule for name, rule in RULES.items() if name not in without]
    rules += [partial(missing_copy, source=source, target=target) for source, target in copies]
    return [anomaly for rule in rules for anomaly in rule(history)]


def report(operations: Iterable[Operation]) -> list[str]:
    """Lines that tell how much there was to judge, and how far consumers were behind."""
    history = History(operations)
    counts = dict.fromkeys(Outcome, 0)
    for operation in history.operations:
        counts[operation.outcome] += 1
    transactions = [each for each in history.operations if each.transactional_id is not None]
    happened = sum(map(history.happened, transactions))
    lines = [
        f"{len(history.operations)} operations: "
        + ", ".join(f"{count} {name}" for name, count in counts.items()),
        f"{len(transactions)} transactions, {happened} of them happened",
        f"{len(history.reads)} records read in {len(history.highest_read)} partitions",
    ]
    lags = _lags_ms(history)
    if lags:
        lines.append(
            f"from acknowledgement to first read: median {lags[len(lags) // 2]:.1f} ms, longest {lags[-1]:.1f} ms"
        )
    return lines


def _lags_ms(history: History) -> list[float]:
    first: dict[tuple[str, str], int] = {}
    for read in history.reads:
        if read.reader.completed_at is not None:
            place = (read.key, read.value)
            first[place] = min(read.reader.completed_at, first.get(place, read.reader.completed_at))
    return sorted(
        max(0, first[send.key, send.value] - operation.completed_at) / 1e6
        for operation in history.operations
        if operation.outcome == Outcome.OK and operation.completed_at is not None
        for send in operation.sends()
        if (send.key, send.value) in first
    )
