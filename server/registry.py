"""Which API is served, by which function, in which versions.

A handler module is named after its API and holds one function marked with `@serves(RequestClass)`. `load_registry`
finds the modules of `ottla.server.handlers` by their names, so adding an API edits nothing but its own files; a
module is imported when its API is first asked for, or soon after the start, so that the first clients do not wait
for code they do not use. The versions are all that Kafka has. What ApiVersions advertises is read from here and from
nowhere else.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Awaitable, Callable
from types import FunctionType
from typing import Any, TypeVar

from ottla.server import coordinated
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey, api_key_info
from ottla.wire.counting import element_counter, element_releaser
from ottla.wire.schema import decode_bounded, encoder, prepare_codecs

# The arrays of one request, nested ones included, have no more elements than this: a fetch of 200,000 partitions
# passes, a frame full of empty strings does not.
MAX_REQUEST_ELEMENTS = 250_000

# ApiVersions tells less than the lowest version served of Produce: old librdkafka looks for it (KAFKA-18659).
_ADVERTISED_MIN = {ApiKey.PRODUCE: 0}

# A handler answers with a response message, as it is or encoded, with None where the protocol has no answer (acks=0),
# or with a coroutine of either when it has to wait.
Answer = Any
HandlerFunction = Callable[[RequestContext, Any], Answer | Awaitable[Answer]]
Function = TypeVar("Function", bound=Callable[..., Any])

_HANDLERS = "ottla.server.handlers"
_MARK = "ottla_serves"
_ENDS = ("py", "pyc")


def serves(request_type: type[Any]) -> Callable[[Function], Function]:
    """Mark a function as the handler of a request class, for all versions that class knows."""

    def mark(function: Function) -> Function:
        setattr(function, _MARK, request_type)
        return function

    return mark


class Encoded:
    """A response that was encoded before, in the version that is asked for: many get the same."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body


class Registration:
    """One served API. Its code is there from `load` on, and the codecs of a version from `prepare` on, which the first
    use of either calls."""

    __slots__ = (
        "advertised_min",
        "api_key",
        "function",
        "is_loaded",
        "max_version",
        "min_version",
        "ready_versions",
        "request_type",
    )

    function: HandlerFunction
    request_type: type[Any]

    def __init__(self, api_key: ApiKey) -> None:
        info = api_key_info(api_key)
        self.api_key = api_key
        self.is_loaded = False
        self.ready_versions: set[int] = set()  # whose codecs have been compiled
        self.min_version = info.min_version
        self.max_version = info.max_version
        self.advertised_min = _ADVERTISED_MIN.get(api_key, info.min_version)

    def __getattr__(self, name: str) -> Any:
        # Reached only while the slots of the code are empty.
        if name not in ("function", "request_type"):
            raise AttributeError(name)
        self.load()
        return getattr(self, name)

    def prepare(self, version: int) -> None:
        """Have the handler, and the codecs of a version."""
        if not self.is_loaded:
            self.load()
        name = self.request_type.__name__.removesuffix("Request") + "Response"
        prepare_codecs(self.request_type, getattr(sys.modules[self.request_type.__module__], name), version)
        self.ready_versions.add(version)

    def load(self) -> None:
        """Import the handler, and the coordinator that it asks."""
        for name in coordinated.MODULES.get(self.api_key, ()):
            importlib.import_module(name)
        module = importlib.import_module(f"{_HANDLERS}.{self.api_key.name.lower()}")
        marked = [
            value
            for value in vars(module).values()
            if isinstance(value, FunctionType)
            and hasattr(value, _MARK)
            and value.__module__ == module.__name__
        ]
        if len(marked) != 1:
            raise RuntimeError(f"{module.__name__} has {len(marked)} functions marked with @serves")
        request_type = getattr(marked[0], _MARK)
        if request_type.API_KEY is not self.api_key:
            raise RuntimeError(f"{module.__name__} serves {request_type.API_KEY.name}")
        self.request_type = request_type
        self.function = marked[0]
        self.is_loaded = True

    def decode(self, version: int, body: memoryview, max_elements: int = MAX_REQUEST_ELEMENTS) -> Any:
        """The request; TooManyElements if it has more in its arrays."""
        return decode_bounded(self.request_type, version, body, 0, max_elements)

    def is_large(self, response: Any, elements: int) -> bool:
        """Whether a response has more elements in its arrays than so many."""
        kind: Any = type(response)
        return kind is not Encoded and element_counter(kind)(response, elements) > elements

    def release(self, response: Any) -> None:
        """Let go of a large response bit by bit."""
        kind: Any = type(response)
        element_releaser(kind)(response)

    def encode(self, version: int, response: Any, chunks: list[Any]) -> None:
        """Append the encoded response to `chunks`."""
        if type(response) is Encoded:
            chunks.append(response.body)
            return
        encoder(type(response), version)(response, chunks)


Registry = dict[int, Registration]


def load_registry() -> Registry:
    """What is served, by API key."""
    package = importlib.import_module(_HANDLERS)
    stems = {
        stem for path in package.__path__ for stem, _, end in map(_parted, os.listdir(path)) if end in _ENDS
    }
    keys = sorted(ApiKey[stem.upper()] for stem in stems if stem != "__init__")
    return {key: Registration(key) for key in keys}


def _parted(file_name: str) -> tuple[str, str, str]:
    return file_name.partition(".")
