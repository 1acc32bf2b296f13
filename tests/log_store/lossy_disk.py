"""A disk that loses what was not synced, as a machine does that loses its power.

Writes go to real files, and beside that a model keeps what fsync has made durable: pages of files, and names in
directories. `crash` lays down a directory as it may look after: everything durable is there, and of the rest each
page, each change of a length and each name made, moved or removed is there or not, as the dice fall. Nothing ties a
file to its name: a file that was synced is lost if its directory was not.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.log_store.files import Buffer, OsFileSystem

PAGE_BYTES = 4096


class Died(BaseException):
    """The process is gone; nothing of it may catch this."""


class FileNode:
    """A file: what it holds, what of it is durable, and which pages were written since."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = b""
        self.dirty: set[int] = set()

    def write(self, data: bytes, offset: int) -> None:
        if len(self.content) < offset:
            self.content.extend(bytes(offset - len(self.content)))
        self.content[offset : offset + len(data)] = data
        if data:
            self.dirty.update(range(offset // PAGE_BYTES, (offset + len(data) - 1) // PAGE_BYTES + 1))

    def truncate(self, length: int) -> None:
        del self.content[length:]
        self.content.extend(bytes(length - len(self.content)))

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.dirty.clear()

    def after_crash(self, keeps: Callable[[], bool]) -> bytes:
        size = len(self.content) if keeps() else len(self.durable)
        left = bytearray(self.durable[:size])
        left.extend(bytes(size - len(left)))
        for page in sorted(self.dirty):
            start = page * PAGE_BYTES
            if start < size and keeps():
                piece = self.content[start : min(start + PAGE_BYTES, size)]
                left[start : start + len(piece)] = piece
        return bytes(left)


class DirectoryNode:
    """A directory: its names, the durable ones, and what happened to names since."""

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.changes: list[tuple[str | None, str | None, Node]] = []  # old name, new name, what

    def change(self, old: str | None, new: str | None, node: Node) -> None:
        _apply(self.names, old, new, node)
        self.changes.append((old, new, node))

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.changes = []

    def after_crash(self, keeps: Callable[[], bool]) -> dict[str, Node]:
        left = dict(self.durable)
        for change in self.changes:
            if keeps():
                _apply(left, *change)
        return left


Node = FileNode | DirectoryNode


def _apply(names: dict[str, Node], old: str | None, new: str | None, node: Node) -> None:
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = node


class LossyDisk(OsFileSystem):
    """Everything below `root`, which exists and is empty. Dies at the change after its `lives`-th."""

    def __init__(self, root: Path, lives: int = 1 << 30) -> None:
        self.root = DirectoryNode()
        self.lives = lives
        self.changes = 0
        self._base = str(root)
        self._open_nodes: dict[int, Node] = {}
        self.open: Callable[..., int] = self._open
        for name in ("close", "pwrite", "ftruncate", "fsync", "rename", "unlink", "mkdir"):
            setattr(self, name, getattr(self, f"_{name}"))

    def crash(self, target: Path, dice: random.Random, kept: float) -> None:
        """Lay down in `target` what may be left, each unsynced thing with the probability `kept`."""
        target.mkdir()
        _lay_down(self.root, target, lambda: dice.random() < kept)

    def _live(self) -> None:
        self.changes += 1
        if self.changes > self.lives:
            raise Died

    def _place(self, path: str) -> tuple[DirectoryNode, str]:
        parts = os.path.relpath(path, self._base).split(os.sep)
        node: Node = self.root
        for part in parts[:-1]:
            assert isinstance(node, DirectoryNode)
            node = node.names[part]
        assert isinstance(node, DirectoryNode)
        return node, parts[-1]

    def _open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if os.path.abspath(path) == self._base:
            fd = os.open(path, flags, mode)
            self._open_nodes[fd] = self.root
            return fd
        if os.path.abspath(path) == os.path.dirname(self._base):
            fd = os.open(path, flags, mode)
            self._open_nodes[fd] = DirectoryNode()  # above this disk
            return fd
        directory, name = self._place(path)
        if flags & os.O_CREAT and not os.path.exists(path):
            self._live()
            directory.change(None, name, FileNode())
        fd = os.open(path, flags, mode)
        node = directory.names[name]
        self._open_nodes[fd] = node
        if flags & os.O_TRUNC:
            assert isinstance(node, FileNode)
            node.truncate(0)
        return fd

    def _close(self, fd: int) -> None:
        self._open_nodes.pop(fd, None)
        os.close(fd)

    def _file(self, fd: int) -> FileNode:
        node = self._open_nodes[fd]
        assert isinstance(node, FileNode)
        return node

    def _pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        try:
            self._live()
        except Died:
            data = memoryview(data)[: len(data) // 2]
            self._file(fd).write(bytes(data), offset)
            raise
        self._file(fd).write(bytes(data), offset)
        return os.pwrite(fd, data, offset)

    def _ftruncate(self, fd: int, length: int) -> None:
        self._live()
        self._file(fd).truncate(length)
        os.ftruncate(fd, length)

    def _fsync(self, fd: int) -> None:
        self._live()
        self._open_nodes[fd].sync()

    def _rename(self, source: str, target: str) -> None:
        self._live()
        directory, old = self._place(source)
        other, new = self._place(target)
        assert directory is other, "names move only within their directory"
        if old not in directory.names:
            raise FileNotFoundError(source)
        directory.change(old, new, directory.names[old])
        os.replace(source, target)

    def _unlink(self, path: str) -> None:
        directory, name = self._place(path)
        if name not in directory.names:
            raise FileNotFoundError(path)
        self._live()
        directory.change(name, None, directory.names[name])
        os.unlink(path)

    def _mkdir(self, path: str, *_: Any) -> None:
        self._live()
        directory, name = self._place(path)
        directory.change(None, name, DirectoryNode())
        os.mkdir(path)


def _lay_down(directory: DirectoryNode, target: Path, keeps: Callable[[], bool]) -> None:
    for name, node in directory.after_crash(keeps).items():
        if isinstance(node, DirectoryNode):
            (target / name).mkdir()
            _lay_down(node, target / name, keeps)
        else:
            (target / name).write_bytes(node.after_crash(keeps))
