"""Functions that are written as text, such as the codecs of a message: their way to the compiler.

Most of them are the same in every process, so a process may remember them for the next one: see `ottla.cli`.
"""

from __future__ import annotations

from types import CodeType
from typing import Protocol


class Compiler(Protocol):
    """Makes code of a text that has a title."""

    def __call__(self, text: str, title: str, /) -> CodeType: ...


def compile_text(text: str, title: str) -> CodeType:
    """The ordinary way."""
    return compile(text, title, "exec", dont_inherit=True)


_compiler: Compiler = compile_text


def code_of(text: str, title: str) -> CodeType:
    """The code of a text."""
    return _compiler(text, title)


def use_compiler(compiler: Compiler) -> None:
    """Have texts compiled by somebody else from now on."""
    global _compiler
    _compiler = compiler
