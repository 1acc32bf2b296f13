"""What every transactional client does: take orders from standard input, and copy."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Protocol

from compat_tests.group_members.telling import end_of_input

PATIENCE_SECONDS = 30

Positions = dict[int, int]
"""The next offset to read of each partition."""


class TransactionalClient(Protocol):
    """One client library."""

    def init(self) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, records: list[tuple[int, str]]) -> list[int]:
        """Send values to partitions and wait until all are acknowledged; their offsets."""

    def offsets(self, group: str, topic: str, positions: Positions) -> None:
        """Commit offsets with the transaction, as the member that `consume` made, if it did."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def read(self, topic: str, partition: int, isolation: str) -> list[tuple[int, str]]:
        """All there is from the beginning to the end, as this isolation level shows it."""

    def consume(self, topic: str, partitions: int, group: str, way: str) -> None:
        """Begin to read where the group has come to."""

    def poll(self, count: int) -> list[tuple[int, int, str]]:
        """Some of the next records as partition, offset and value; none if none came for a while."""


def obey(client: TransactionalClient, errors: tuple[type[Exception], ...]) -> None:
    """Do as told until standard input ends."""
    for line in iter(sys.stdin.readline, ""):
        order, *words = line.split()
        try:
            if order == "copy":
                source, target, partitions, group, batch, way = words
                _copy(client, source, target, int(partitions), group, int(batch), way)
                return
            _say("ok", *_answer(client, order, words))
        except errors as error:
            name = error_name(error)
            _say("failed" if order == "copy" else "error", name, str(error).replace("\n", " "))
            if order == "copy":
                return


def _answer(client: TransactionalClient, order: str, words: list[str]) -> list[str]:
    if order == "send":
        topic, partition, *values = words
        return list(map(str, client.send(topic, [(int(partition), value) for value in values])))
    if order == "offsets":
        group, topic, partition, offset = words
        client.offsets(group, topic, {int(partition): int(offset)})
        return []
    if order == "read":
        topic, partition, isolation = words
        return [f"{offset}:{value}" for offset, value in client.read(topic, int(partition), isolation)]
    {"init": client.init, "begin": client.begin, "commit": client.commit, "abort": client.abort}[order]()
    return []


def _copy(
    client: TransactionalClient, source: str, target: str, partitions: int, group: str, batch: int, way: str
) -> None:
    ended = end_of_input()
    client.init()
    client.consume(source, partitions, group, way)
    while not ended.is_set():
        records = client.poll(batch)
        if not records:
            continue
        positions: Positions = {}
        for partition, offset, _ in records:
            positions[partition] = offset + 1
        # Each goes to another partition than it came from: a transaction spans several.
        copied = [((partition + offset) % partitions, value) for partition, offset, value in records]
        client.begin()
        _say("trying", _pairs(positions.items()), _pairs(copied))
        client.send(target, copied)
        client.offsets(group, source, positions)
        client.commit()
        _say("committed")
    _say("left")


def error_name(error: BaseException) -> str:
    """The name of the innermost error: librdkafka's code where there is one, else the class."""
    if isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    (inner, *_) = error.args or (None,)
    name = getattr(inner, "name", None)
    return str(name()) if callable(name) else type(error).__name__


def _pairs(pairs: Iterable[tuple[object, object]]) -> str:
    return ",".join(f"{first}:{second}" for first, second in pairs)


def _say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()
