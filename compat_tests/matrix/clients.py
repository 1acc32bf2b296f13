"""The clients of the matrix. Each family adds its own in `drivers/<family>_clients.py`, as a list `CLIENTS`.

A client says how its driver is made ready (fetched and compiled into the cache, if need be) and what starts it, or
raises `NotHere` with what this machine lacks: its cases are then shown as not run.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compat_tests.matrix.driver import CALL_SECONDS, Driver


class NotHere(Exception):
    """This machine cannot run the client; says in a few words what it lacks and how to get it."""


@dataclass(frozen=True)
class Client:
    """One client library in one version.

    `ready` returns the command that starts the driver, without the broker's address. It may take its time the first
    time, says so in a line on standard error, and keeps what it made below `jars.cache_directory()`.
    A client with `shared` false takes none of the shared cases, only those that name it; it needs no driver,
    and then says its version itself.
    """

    name: str
    title: str
    language: str
    ready: Callable[[], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    shared: bool = True
    call_seconds: float = CALL_SECONDS
    version: str | None = None

    def start(self, bootstrap: str) -> Driver:
        """Start its driver on a broker."""
        return Driver(self.ready(), bootstrap, self.environment, self.call_seconds)


@functools.cache
def all_clients() -> tuple[Client, ...]:
    """Every client that a `drivers/*_clients.py` or an `ecosystem/*_clients.py` lists, in the order of their files."""
    found: list[Client] = []
    for room in ("drivers", "ecosystem"):
        package = importlib.import_module(f"compat_tests.matrix.{room}")
        for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
            if module.endswith("_clients"):
                found += importlib.import_module(f"{package.__name__}.{module}").CLIENTS
    return tuple(found)


def client_named(name: str) -> Client:
    """The client of that name."""
    for client in all_clients():
        if client.name == name:
            return client
    raise KeyError(f"no client is called {name!r}; there are {', '.join(c.name for c in all_clients())}")
