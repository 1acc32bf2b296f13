"""Puts off the parts of other people's packages that a broker does not need for its first answers.

`import trio` reads TLS, DTLS, subprocesses, files and much of the standard library below them, and with what it is
built on it was half of a start. Here a module is put in place with a few of its names, taken from where its package
has them; it becomes the whole module, by running its own code, when anything else of it is asked for. So nothing is
missing: what comes late is only late. Where a package does not look as expected, because it is of another version,
it is imported in the ordinary way. docs/adr/0011-start.md has what it is worth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import CoroutineType, ModuleType
from typing import Any

# One for all: a module that is made whole may need another one.
_making_whole = RLock()
_specs: dict[str, ModuleSpec] = {}

# What is there from the beginning, by the submodule of trio that has it.
_TRIO = {
    "_core": "BrokenResourceError BusyResourceError Cancelled CancelScope ClosedResourceError EndOfChannel Nursery "
    "RunFinishedError TASK_STATUS_IGNORED TaskStatus TrioInternalError WouldBlock current_effective_deadline "
    "current_time open_nursery run",
    "_channel": "MemoryReceiveChannel MemorySendChannel open_memory_channel",
    "_signals": "open_signal_receiver",
    "_sync": "CapacityLimiter Condition Event Lock Semaphore StrictFIFOLock",
    "_timeouts": "TooSlowError fail_after fail_at move_on_after move_on_at sleep sleep_forever sleep_until",
}
_TRIO_SUBMODULES = ("abc", "to_thread")
_TRIO_LOWLEVEL = (
    "Abort ParkingLot RaiseCancelT RunVar Task TrioToken add_instrument cancel_shielded_checkpoint checkpoint "
    "checkpoint_if_cancelled current_root_task current_statistics current_task current_trio_token "
    "disable_ki_protection enable_ki_protection in_trio_run in_trio_task notify_closing remove_instrument reschedule "
    "spawn_system_task start_thread_soon wait_readable wait_task_rescheduled wait_writable"
)
_CORO_CLOSED = "CORO_CLOSED"
_BUILT_ON = ("trio", "attr", "attrs", "outcome")


class LateModule(ModuleType):
    """A module that becomes whole when something is asked of it that is not there yet."""

    def __getattr__(self, name: str) -> Any:
        missing = AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise missing  # the import system looks for these in passing
        place = f"{self.__name__}.{name}"
        if place in sys.modules:  # it is being imported, and hangs on its parent only when that is done
            return sys.modules[place]
        path = self.__dict__.get("__path__")
        if path is not None and PathFinder.find_spec(place, path) is not None:
            return import_module(place)
        with _making_whole:
            make_whole(self)
            if type(self) is LateModule:  # its own code is running, and has not come to it
                raise missing
        return getattr(self, name)


def make_whole(module: ModuleType) -> None:
    """Run the module's own code, unless that has been done."""
    with _making_whole:
        spec = _specs.pop(module.__name__, None)
        if spec is not None:
            assert spec.loader is not None
            spec.loader.exec_module(module)
            module.__class__ = ModuleType


def put_off_trio() -> None:
    """Have as much of trio as a broker needs to answer, unless somebody has imported it."""
    if any(name in sys.modules for name in _BUILT_ON):
        return
    _put_off_inspection()
    try:
        _put_off_attrs()
        with _no_thread_names():
            _begin_trio()
    except (ImportError, AttributeError):  # not the trio or attrs that this was written for
        for name in [*sys.modules]:
            if name.partition(".")[0] in _BUILT_ON:
                del sys.modules[name]
                _specs.pop(name, None)
        import_module("trio")


def _begin_trio() -> None:
    trio = _begin("trio")
    lowlevel = _begin("trio.lowlevel", trio)
    for submodule, names in _TRIO.items():
        _take(trio, import_module(f"trio.{submodule}"), names)
    _take(lowlevel, import_module("trio._core"), _TRIO_LOWLEVEL)
    for submodule in _TRIO_SUBMODULES:
        import_module(f"trio.{submodule}")


def _put_off_attrs() -> None:
    """attrs, with which trio's classes are made, without its validators and converters, which are many classes."""
    attr, attrs = _begin("attr"), _begin("attrs")
    validators: Any = _begin("attr.validators", attr)
    validators.instance_of = _instance_of
    made: Any = _begin("attr._make", attr)
    # The number that sets the hashes of a class apart is in the text of its functions: the same text needs no compiler.
    made.hash = _same_in_every_process
    make_whole(made)
    attr.s, attr.ib = made.attrs, made.attrib  # type: ignore[attr-defined]
    _take(attrs, made, "Factory NOTHING")
    _take(attrs, import_module("attr._next_gen"), "define field frozen mutable")


def _put_off_inspection() -> None:
    """What attrs, logging and trio import for questions that they do not ask at a start but for a few."""
    if "inspect" not in sys.modules:
        inspect: Any = _begin("inspect")
        inspect.iscoroutine, inspect.getcoroutinestate = _is_coroutine, _coroutine_state
        inspect.CORO_CLOSED = _CORO_CLOSED
    for name in ("tokenize", "traceback"):
        if name not in sys.modules:
            _begin(name)
    if "platform" not in sys.modules and sys.implementation.name == "cpython":
        platform: Any = _begin("platform")
        platform.python_implementation = _python_implementation


@contextmanager
def _no_thread_names() -> Iterator[None]:
    """Keep trio from running `ldconfig` to find the C library: all it wants is to name its threads in the system's
    lists, and it does without where there is no such library."""
    if sys.platform != "linux" or "ctypes" in sys.modules:
        yield
        return
    ctypes: Any = ModuleType("ctypes")
    ctypes.util = ModuleType("ctypes.util")
    ctypes.util.find_library, ctypes.CDLL = str, _no_library
    stands = {"ctypes": ctypes, "ctypes.util": ctypes.util}
    sys.modules.update(stands)
    try:
        yield
    finally:
        for name in stands:
            sys.modules.pop(name, None)


def _begin(name: str, parent: ModuleType | None = None) -> LateModule:
    """A module with nothing in it yet."""
    spec = find_spec(name)
    if spec is None:
        raise ImportError(f"there is no module {name}")
    module = module_from_spec(spec)
    module.__class__ = LateModule
    assert isinstance(module, LateModule)
    sys.modules[name] = module
    _specs[name] = spec
    if parent is not None:
        setattr(parent, name.rpartition(".")[2], module)
    return module


def _take(target: ModuleType, source: ModuleType, names: str) -> None:
    for name in names.split():
        setattr(target, name, getattr(source, name))


def _is_coroutine(thing: object) -> bool:
    return isinstance(thing, CoroutineType)


def _coroutine_state(coroutine: CoroutineType[Any, Any, Any]) -> str:
    if coroutine.cr_running:
        return "CORO_RUNNING"
    if coroutine.cr_suspended:
        return "CORO_SUSPENDED"
    return _CORO_CLOSED if coroutine.cr_frame is None else "CORO_CREATED"


def _python_implementation() -> str:
    return "CPython"


def _same_in_every_process(text: str) -> int:
    return int.from_bytes(text.encode()) % sys.hash_info.modulus


def _no_library(name: str) -> None:
    raise OSError(f"{name} is not looked for")


def _instance_of(wanted: type) -> Callable[[object, Any, object], None]:
    def check(instance: object, attribute: Any, value: object) -> None:
        if not isinstance(value, wanted):
            raise TypeError(
                f"{attribute.name!r} must be {wanted!r} (got {value!r} that is a {value.__class__!r})."
            )

    return check
