"""Which part of which log is cleaned: tables of facts; and the pace of it."""

from typing import Any

import pytest

from ottla.log_store.compaction.choice import (
    Dirtiness,
    OffsetsToClean,
    dirtiness,
    group_segments,
    is_overdue,
    offsets_to_clean,
)
from ottla.log_store.compaction.throttle import Throttle
from ottla.log_store.retention import SegmentFacts

SEGMENTS = [
    SegmentFacts(0, 100, 1000),
    SegmentFacts(10, 100, 2000),
    SegmentFacts(20, 100, 3000),
    SegmentFacts(30, 50, 4000),
]


def chosen(**facts: Any) -> OffsetsToClean:
    defaults: dict[str, Any] = {
        "checkpoint": None,
        "log_start_offset": 0,
        "log_end_offset": 35,
        "stable_offset": 35,
        "min_compaction_lag_ms": 0,
        "now_ms": 5000,
    }
    return offsets_to_clean(SEGMENTS, **{**defaults, **facts})


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, (0, 30, False)),
        ({"checkpoint": 15}, (15, 30, False)),
        ({"checkpoint": 15, "log_start_offset": 17}, (17, 30, True)),
        ({"checkpoint": 36}, (0, 30, True)),
        ({"stable_offset": 30}, (0, 30, False)),
        ({"stable_offset": 29}, (0, 20, False)),
        ({"stable_offset": 5}, (0, 0, False)),
        ({"stable_offset": 5, "checkpoint": 3}, (3, 3, False)),
        ({"min_compaction_lag_ms": 2500}, (0, 20, False)),
        ({"min_compaction_lag_ms": 2000}, (0, 30, False)),
        ({"min_compaction_lag_ms": 9000}, (0, 0, False)),
        ({"min_compaction_lag_ms": 3500, "checkpoint": 20}, (20, 20, False)),
    ],
)
def test_offsets(facts: dict[str, Any], expected: tuple[int, int, bool]) -> None:
    """From the checkpoint, if it can be, to the first segment that is active, unstable or too young."""
    assert chosen(**facts) == expected


@pytest.mark.parametrize(
    ("first_dirty", "first_uncleanable", "expected"),
    [
        (0, 30, (300, 300)),
        (10, 30, (200, 300)),
        (15, 30, (200, 400)),
        (20, 20, (0, 200)),
        (0, 10, (100, 100)),
    ],
)
def test_dirtiness(first_dirty: int, first_uncleanable: int, expected: tuple[int, int]) -> None:
    """A segment that is partly dirty counts on both sides, as in Kafka."""
    assert dirtiness(SEGMENTS, OffsetsToClean(first_dirty, first_uncleanable, False)) == expected
    assert Dirtiness(0, 0).ratio == 0


def test_overdue() -> None:
    """max.compaction.lag.ms looks at when dirty segments begin, the active one and unknown times excepted."""
    timestamps = [500, -1, 1500, 100]

    def overdue(first_dirty: int, lag_ms: int) -> bool:
        return is_overdue(
            SEGMENTS,
            first_dirty,
            first_timestamp_of=timestamps.__getitem__,
            max_compaction_lag_ms=lag_ms,
            now_ms=5000,
        )

    assert overdue(0, 4000)
    assert not overdue(0, 4500)
    assert overdue(10, 3000)
    assert not overdue(10, 4000)
    assert not overdue(30, 1)
    assert not overdue(0, (1 << 63) - 1)


def test_groups() -> None:
    """Neighbours together until bytes, index bytes or offsets would be too many."""

    def groups(max_bytes: int, max_index_bytes: int = 1000, index: int = 8) -> list[list[int]]:
        found = group_segments(
            SEGMENTS, [index] * 4, 35, max_bytes=max_bytes, max_index_bytes=max_index_bytes
        )
        return [[segment.base_offset for segment in group] for group in found]

    assert groups(1000) == [[0, 10, 20, 30]]
    assert groups(200) == [[0, 10], [20, 30]]
    assert groups(10) == [[0], [10], [20], [30]]
    assert groups(1000, max_index_bytes=24) == [[0, 10, 20], [30]]
    far = [SegmentFacts(0, 1, 0), SegmentFacts(10, 1, 0), SegmentFacts(2**31, 1, 0)]
    found = group_segments(far, [0] * 3, 2**31 + 5, max_bytes=10, max_index_bytes=10)
    assert [len(group) for group in found] == [2, 1]


def test_throttle() -> None:
    """Bytes beyond the rate are paid for by sleeping; without a limit nobody sleeps."""
    now = 0.0
    slept = []

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    throttle = Throttle(1000, clock=lambda: now, sleep=sleep)
    for _ in range(100):
        throttle.spend(50)
        now += 0.01
    assert now == pytest.approx(5.0, rel=0.1)
    assert len(slept) > 10
    slept.clear()
    free = Throttle(float("inf"), clock=lambda: now, sleep=sleep)
    free.spend(1 << 40)
    assert slept == []
