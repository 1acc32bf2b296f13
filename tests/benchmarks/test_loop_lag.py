"""How late the loop was in several turns together."""

import pytest

from benchmarks.loop_lag import FIGURES, Lag, LagOfTurns


def lag(seconds: float, milliseconds: float, longest_work: str) -> Lag:
    return Lag(seconds, dict.fromkeys(FIGURES, milliseconds), longest_work)


def test_turns_are_put_together() -> None:
    """A percentile is the mean of the turns, which count by their length; the worst is the worst of all."""
    turns = LagOfTurns()
    for turn in (lag(3.0, 1.0, "a/b"), Lag(), lag(1.0, 9.0, "c/d")):
        turns.add(turn)
    figures, longest_work = turns.summary()
    assert longest_work == "c/d"
    assert figures["p999_ms"] == pytest.approx(3.0)
    assert figures["work_max_ms"] == figures["max_ms"] == 9.0


def test_a_broker_that_does_not_tell() -> None:
    """Nothing is said about it."""
    turns = LagOfTurns()
    turns.add(Lag())
    assert turns.summary() == ({}, "")
