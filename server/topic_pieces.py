"""Requests that name partitions by topic, cut into pieces that each take a moment, and their answers put together.

Handing all of a large commit to its group at once would keep the loop for as long as it is large. Each piece is one
change of the group, whole or not at all; a request that is cut into several may find the group changed in between,
and then has another error for some partitions than for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from types import CoroutineType
from typing import Any, Protocol, TypeVar

from ottla.server.turns import Turns

PIECE_PARTITIONS = 100


class _Topic(Protocol):
    name: str

    @property
    def partitions(self) -> list[Any]: ...


Topic = TypeVar("Topic", bound=_Topic)


def in_pieces(topics: Iterable[Topic], most: int) -> Iterator[list[Topic]]:
    """The same topics and partitions in the same order, with no more partitions at a time than so many."""
    piece: list[Topic] = []
    room = most
    for topic in topics:
        left: Sequence[Any] = topic.partitions
        while len(left) > room:
            if room:
                piece.append(_part_of(topic, left[:room]))
            yield piece
            piece, left, room = [], left[room:], most
        if left:
            piece.append(_part_of(topic, left))
            room -= len(left)
    if piece:
        yield piece


async def ask_in_pieces(topics: list[Topic], ask: Callable[[list[Topic]], Any]) -> list[Any]:
    """What `ask` answers to each piece, in turns with others; it may give a coroutine where there is something to wait
    for."""
    if topics and sum(len(topic.partitions) for topic in topics) <= PIECE_PARTITIONS:  # as nearly always
        answer = ask(topics)
        return [await answer if isinstance(answer, CoroutineType) else answer]
    answers = []
    async with Turns() as turns:
        for piece in in_pieces(topics, PIECE_PARTITIONS):
            answer = ask(piece)
            answers.append(await turns.outside(answer) if isinstance(answer, CoroutineType) else answer)
            await turns.rest()
    return answers


def put_together(pieces: Iterable[Iterable[Topic]]) -> list[Topic]:
    """One entry for each topic, with its partitions in the order in which they come."""
    found: dict[tuple[str, Any], Topic] = {}
    for piece in pieces:
        for topic in piece:
            entry = found.setdefault((topic.name, getattr(topic, "topic_id", None)), topic)
            if entry is not topic:
                entry.partitions.extend(topic.partitions)
    return list(found.values())


def _part_of(topic: Topic, partitions: Sequence[Any]) -> Topic:
    part: Any = copy(topic)
    part.partitions = list(partitions)
    made: Topic = part
    return made
