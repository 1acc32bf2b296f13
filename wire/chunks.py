"""What an encoded message is made of: buffers to write, and slices of files to send without reading them.

A connection writes the buffers and gives each `FileSlice` to `os.sendfile`. The slice holds its open file,
so that a segment deleted after the read was planned can still be sent to the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol


class OpenFile(Protocol):
    """All that a slice needs of a file: the descriptor stays open as long as the object lives."""

    def fileno(self) -> int: ...


class FileSlice:
    """`length` bytes of `file` from `position`."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"FileSlice(fd={self.file.fileno()}, position={self.position}, length={self.length})"

    def fileno(self) -> int:
        return self.file.fileno()

    def read(self) -> bytes:
        """The bytes themselves, for connections that cannot sendfile. OSError when the file has become
        shorter."""
        data = os.pread(self.file.fileno(), self.length, self.position)
        while len(data) < self.length:
            more = os.pread(self.file.fileno(), self.length - len(data), self.position + len(data))
            if not more:
                raise OSError(f"{self!r}: the file ends {self.length - len(data)} bytes early")
            data += more
        return data


Buffer = bytes | bytearray | memoryview
Chunk = Buffer | FileSlice


def chunks_length(chunks: Iterable[Chunk]) -> int:
    """The size of a frame made of these chunks. Buffers are of bytes, so their length is their size."""
    return sum(map(len, chunks))


def join_chunks(chunks: Iterable[Chunk]) -> bytes:
    """Everything as one bytes object, file slices read in."""
    return b"".join([chunk.read() if isinstance(chunk, FileSlice) else chunk for chunk in chunks])
