"""What earlier starts have read and compiled, in one file.

A start imports some two hundred modules: for each a directory is searched, a file of bytecode is looked for, compared
with its source and read, and attrs and our own codecs compile a hundred and fifty functions that they write as text.
Together that was a third of a start. So a start that had to read or compile something for itself writes down what it
used, beside the other bytecode of this package, and the next ones read that one file.

It is trusted as far as other bytecode is: the code of a module is used if its source has the time and the size that it
had, and is where the path, or the module's package, leads to; anything else, a damaged file among it, is imported and
compiled in the ordinary way. Where no bytecode may be written (PYTHONDONTWRITEBYTECODE, a directory of somebody else's)
this is not.
"""

from __future__ import annotations

import builtins
import marshal
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash, spec_from_file_location
from types import CodeType
from typing import Any

from ottla.cli.late_modules import LateModule

_LAYOUT = b"1"  # of the file: another one where that changes
_HEADER = _LAYOUT + MAGIC_NUMBER
_SUM_BYTES = _LENGTH_BYTES = 8
_MOST_TEXTS = 2000
_compile = builtins.compile


Buffer = bytes | memoryview
# Where the source of a module is, its time in nanoseconds, its size, whether it is a package, and the code.
Module = tuple[str, int, int, bool, Buffer]


class StartImage:
    """Serves imports and compilations from the file until it is saved."""

    def __init__(self, path: str | None = None) -> None:
        self._path = _own_path() if path is None else path
        self._modules: dict[str, Module] = {}
        self._texts: dict[tuple[str, str], Buffer] = {}
        self._before: frozenset[str] = frozenset()
        self._served: set[str] = set()
        self._compiled: dict[tuple[str, str], CodeType] = {}

    def open(self) -> None:
        """Read the file if there is one, and serve from it from now on."""
        self._before = frozenset(sys.modules)
        # Where there is none that could be used, this start writes another one.
        with suppress(OSError, EOFError, ValueError, TypeError, AttributeError):
            self._modules, self._texts = _read(self._path)
        sys.meta_path.insert(0, self)

    def close(self) -> None:
        """Serve no more."""
        # Another list: a thread may be on its way through this one, and would miss a finder.
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        self._modules, self._texts, self._compiled = {}, {}, {}

    def find_spec(self, name: str, path: Any = None, target: object = None) -> ModuleSpec | None:
        """A module whose code is here, for the import system; None for others."""
        known = self._modules.get(name)
        if known is None:
            return None
        location, mtime_ns, size, is_package, code = known
        if path is None:  # whoever puts a module of that name before it on the path means that one
            spec = PathFinder.find_spec(name)
            if spec is None or spec.origin != location:
                return spec
        elif location != _place(path, name, is_package):
            return None
        try:
            source = os.stat(location)
        except OSError:
            return None
        if source.st_mtime_ns != mtime_ns or source.st_size != size:
            return None
        self._served.add(name)
        loader = _Loader(name, location, code)
        places = [os.path.dirname(location)] if is_package else None
        return spec_from_file_location(name, location, loader=loader, submodule_search_locations=places)

    def compile(self, text: str, title: str) -> CodeType:
        """The code of a text."""
        key = (title, text)
        known = self._texts.get(key)
        if known is not None:
            code: CodeType = marshal.loads(known)
            return code
        code = _compile(text, title, "exec", dont_inherit=True)
        self._compiled[key] = code
        return code

    @contextmanager
    def compiling_for_others(self) -> Iterator[None]:
        """Serve others who compile texts, too, while there is one thread."""

        def compiled(source: Any, filename: Any, mode: str, *args: Any, **options: Any) -> Any:
            if args or options or mode != "exec" or type(source) is not str or type(filename) is not str:
                return _compile(source, filename, mode, *args, **options)
            return self.compile(source, filename)

        builtins.compile = compiled
        try:
            yield
        finally:
            builtins.compile = _compile

    def save(self) -> None:
        """Write down what this start used, if not all of it was here, and serve no more."""
        try:
            if not sys.dont_write_bytecode and os.access(os.path.dirname(self._path), os.W_OK):
                self._save()
        finally:
            self.close()

    def _save(self) -> None:
        found: dict[str, Module] = {}
        for name, module in sys.modules.copy().items():
            if name not in self._before and name not in self._served and type(module) is not LateModule:
                entry = _entry(name, module)
                if entry is not None:
                    found[name] = entry
        texts: dict[tuple[str, str], Buffer] = {}
        for key, code in self._compiled.copy().items():
            texts[key] = marshal.dumps(code)
        if found or texts:
            if len(self._texts) < _MOST_TEXTS:
                texts.update(self._texts)
            _write(self._path, self._modules | found, texts)


def _own_path() -> str:
    """Beside the other bytecode of this package; nowhere for an interpreter that has none."""
    if sys.implementation.cache_tag is None:
        return ""
    return cache_from_source(__file__).removesuffix(".pyc") + ".image"


def _read(path: str) -> tuple[dict[str, Module], dict[tuple[str, str], Buffer]]:
    """What is in a file. Code stays there until it is needed."""
    with open(path, "rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    if content[: len(_HEADER)] != _HEADER:
        raise ValueError("another interpreter wrote it, or another Ottla")
    begin = len(_HEADER) + _SUM_BYTES
    if content[len(_HEADER) : begin] != source_hash(content[begin:]):
        raise ValueError("it is damaged")
    modules, texts = marshal.loads(content[begin + _LENGTH_BYTES :])
    codes = content[begin + _LENGTH_BYTES + int.from_bytes(content[begin : begin + _LENGTH_BYTES]) :]
    return (
        {name: (*source, codes[start:end]) for name, (*source, start, end) in modules.items()},
        {key: codes[start:end] for key, (start, end) in texts.items()},
    )


def _write(path: str, modules: dict[str, Module], texts: dict[tuple[str, str], Buffer]) -> None:
    codes = bytearray()

    def place(code: Buffer) -> tuple[int, int]:
        codes.extend(code)
        return len(codes) - len(code), len(codes)

    index = marshal.dumps(
        (
            {name: (*source, *place(code)) for name, (*source, code) in modules.items()},
            {key: place(code) for key, code in texts.items()},
        )
    )
    content = len(index).to_bytes(_LENGTH_BYTES) + index + codes
    beside = f"{path}.{os.getpid()}"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
            file.write(_HEADER + source_hash(content) + content)
        os.replace(beside, path)
    except OSError:  # not ours to write to: starts stay as they are
        with suppress(OSError):
            os.unlink(beside)


class _Loader(SourceFileLoader):
    """Loads a module from code that is at hand; all else, and a second time, as usual."""

    def __init__(self, name: str, path: str, code: Buffer) -> None:
        super().__init__(name, path)
        self._code: Buffer | None = code

    def get_code(self, fullname: str) -> CodeType | None:
        """The code, by name."""
        held, self._code = self._code, None
        if held is not None:
            code: CodeType = marshal.loads(held)
            return code
        return super().get_code(fullname)


def _place(path: Any, name: str, is_package: bool) -> str | None:
    """Where a submodule is found."""
    if len(path) != 1:
        return None
    return os.path.join(path[0], name.rpartition(".")[2]) + ("/__init__.py" if is_package else ".py")


def _entry(name: str, module: Any) -> Module | None:
    """The code of its source; None where there is none, or it changes just now."""
    spec = getattr(module, "__spec__", None)
    if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
        return None
    try:
        before = os.stat(spec.origin)
        code = marshal.dumps(spec.loader.get_code(name))
        after = os.stat(spec.origin)
    except (OSError, ImportError, SyntaxError, EOFError, ValueError, TypeError):
        return None
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        return None
    return spec.origin, after.st_mtime_ns, after.st_size, spec.submodule_search_locations is not None, code
