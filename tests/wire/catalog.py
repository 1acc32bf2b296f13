"""Every message of the wire room, found by listing the package, and the parameters of tests over all
versions.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

from ottla.wire import messages
from ottla.wire.schema import Message


def all_messages() -> list[Any]:
    """Requests and responses by API key."""
    found = []
    for module in pkgutil.iter_modules(messages.__path__):
        namespace = vars(importlib.import_module(f"ottla.wire.messages.{module.name}"))
        found += [
            value
            for value in namespace.values()
            if isinstance(value, type) and issubclass(value, Message) and value is not Message
        ]
    return sorted(found, key=lambda cls: (cls.API_KEY, cls.KIND))


def every_message() -> Any:
    """Parametrises a test over `cls`."""
    return pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)


def every_version() -> Any:
    """Parametrises a test over `cls` and `version`."""
    pairs = [
        (cls, version) for cls in all_messages() for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ]
    return pytest.mark.parametrize(
        ("cls", "version"), pairs, ids=[f"{cls.__name__}-v{version}" for cls, version in pairs]
    )
