"""A file of record batches, read from the start to where no whole batch follows.

Opened read-only and read by pread, so that it can be a segment that a broker is writing to: what is appended after
the file was opened is not looked at, and what is cut off meanwhile reads as an early end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from ottla.wire.errors import KafkaError
from ottla.wire.records.header import HEADER_SIZE, BatchView, batch_size_at

_READ_BYTES = 1024 * 1024

OnBytes = Callable[[int], None]


def ignore_bytes(_count: int) -> None:
    """For callers who show no progress."""


class BatchFile:
    """A `.log` or `.checkpoint` file. After `batches` is exhausted, `end` and `problem` say where and why."""

    def __init__(self, path: str, on_bytes: OnBytes = ignore_bytes) -> None:
        self.path = path
        self._on_bytes = on_bytes
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size
        self.end = 0
        self.problem = ""
        self.is_cut_off = False
        """Whether the file ends inside of the last batch."""
        self.is_zero_filled = False
        """Whether nothing but zeros follows the last batch, as in a preallocated file."""

    def batches(self) -> Iterator[tuple[int, BatchView]]:
        """(position, view) of every batch until the end of the file or the first bytes that are none."""
        position, start = 0, 0
        chunk = memoryview(b"")
        while position < self.size:
            at = position - start
            try:
                size = batch_size_at(chunk, at, len(chunk))
                if size == 0 or at + size > len(chunk):
                    chunk, start, at = self._read(position, max(size, _READ_BYTES)), position, 0
                    size = batch_size_at(chunk, 0, len(chunk))
            except KafkaError as error:
                self._stop(position, error.detail or error.code.name)
                return
            if size == 0 or size > len(chunk) - at:
                self.is_cut_off = True
                needed = size or HEADER_SIZE
                self._stop(position, f"the batch needs {needed} bytes, {self.size - position} are left")
                return
            self._on_bytes(size)
            yield position, BatchView(chunk, at)
            position += size
            self.end = position

    def _stop(self, position: int, problem: str) -> None:
        self.end = position
        self.problem = problem
        self._on_bytes(self.size - position)
        while position < self.size:
            chunk = self._read(position, _READ_BYTES)
            if not chunk or any(chunk):
                return
            position += len(chunk)
        self.is_zero_filled = True

    def _read(self, position: int, length: int) -> memoryview:
        pieces = []
        left = min(length, self.size - position)
        while left > 0 and (piece := os.pread(self._fd, left, position)):
            pieces.append(piece)
            position += len(piece)
            left -= len(piece)
        return memoryview(b"".join(pieces) if len(pieces) != 1 else pieces[0])

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
