"""Which API is served, by which function, in which versions.

A handler module holds one function marked with `@serves(RequestClass)`. `load_registry` imports every module of
`ottla.server.handlers`, so adding an API edits nothing but its own files. What ApiVersions advertises is read
from here and from nowhere else.
"""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import decode_bounded, encoder

# The arrays of one request, nested ones included, have no more elements than this: a fetch of 200,000 partitions
# passes, a frame full of empty strings does not.
MAX_REQUEST_ELEMENTS = 250_000

# A handler answers with a response message, with None where the protocol has no answer (acks=0), or with a
# coroutine of either when it has to wait.
Answer = Any
HandlerFunction = Callable[[RequestContext, Any], Answer | Awaitable[Answer]]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registration:
    """One served API."""

    api_key: ApiKey
    request_type: type[Any]
    function: HandlerFunction
    min_version: int
    max_version: int
    advertised_min: int

    def decode(self, version: int, frame: memoryview, position: int) -> Any:
        """The request body that starts at `position` of the frame."""
        return decode_bounded(self.request_type, version, frame, position, MAX_REQUEST_ELEMENTS)

    def encode(self, version: int, response: Any, chunks: list[Any]) -> None:
        """Append the encoded response to `chunks`."""
        encoder(type(response), version)(response, chunks)


Registry = dict[int, Registration]
_MARK = "ottla_serves"


def serves(request_type: type[Any], *, advertised_min: int | None = None) -> Callable[[Function], Function]:
    """Mark a function as the handler of a request class, for all versions that class knows.

    `advertised_min` widens what ApiVersions tells below what is served; only Produce needs it (KAFKA-18659).
    """

    def mark(function: Function) -> Function:
        setattr(
            function,
            _MARK,
            Registration(
                api_key=request_type.API_KEY,
                request_type=request_type,
                function=function,
                min_version=request_type.MIN_VERSION,
                max_version=request_type.MAX_VERSION,
                advertised_min=request_type.MIN_VERSION if advertised_min is None else advertised_min,
            ),
        )
        return function

    return mark


def load_registry() -> Registry:
    """Import every handler module and return what they serve, by API key."""
    package = importlib.import_module("ottla.server.handlers")
    registry: Registry = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for value in vars(module).values():
            registration = getattr(value, _MARK, None)
            if (
                not isinstance(registration, Registration)
                or registration.function.__module__ != module.__name__
            ):
                continue
            if registration.api_key in registry:
                raise RuntimeError(f"two handlers serve {registration.api_key.name}")
            registry[registration.api_key] = registration
    return dict(sorted(registry.items()))
