"""What the collector is kept from: only in a process that is the broker's own."""

import gc

import pytest

from ottla.server import garbage


def test_the_process_of_somebody_else_is_left_alone() -> None:
    """A broker inside a test must not set aside what the test has made."""
    before = gc.get_freeze_count()
    garbage.set_aside()
    assert gc.get_freeze_count() == before


def test_what_a_broker_has_made_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything there is, once the start is over and whenever much has been made."""
    monkeypatch.setattr(garbage, "_is_own_process", False)
    try:
        garbage.begin_collecting()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        made: list[list[object]] = [[] for _ in range(100)]
        before = gc.get_freeze_count()
        garbage.set_aside()
        assert gc.get_freeze_count() >= before + len(made)
    finally:
        gc.unfreeze()
