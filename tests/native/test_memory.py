"""Memory that is given back to the system: it can be asked for at any time, and nothing else changes."""

from types import ModuleType

import pytest

from ottla.server import garbage


def test_what_is_in_use_stays(speed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holes between buffers are given back, and the buffers keep what is in them."""
    monkeypatch.setattr(garbage, "speed", speed)
    buffers: list[bytearray | None] = [bytearray([number % 251]) * 65_536 for number in range(200)]
    for number in range(0, 200, 2):
        buffers[number] = None
    assert garbage.give_back() in (True, False)
    for number in range(1, 200, 2):
        assert buffers[number] == bytearray([number % 251]) * 65_536


def test_it_takes_no_arguments(speed: ModuleType) -> None:
    """Anything else is refused."""
    with pytest.raises(TypeError):
        speed.give_back(1)


def test_without_the_compiled_module_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library does as it likes."""
    monkeypatch.setattr(garbage, "speed", None)
    assert garbage.give_back() is False
