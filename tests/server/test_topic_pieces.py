"""Requests cut into pieces: nothing is lost, nothing comes twice, and the order stays."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.server import topic_pieces
from ottla.server.topic_pieces import ask_in_pieces, in_pieces, put_together
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def topics_of(sizes: list[int]) -> list[OffsetDeleteRequestTopic]:
    return [
        OffsetDeleteRequestTopic(f"t{number}", [OffsetDeleteRequestPartition(index) for index in range(size)])
        for number, size in enumerate(sizes)
    ]


@given(st.lists(st.integers(0, 12), max_size=6), st.integers(1, 7))
def test_pieces_put_together_are_the_whole(sizes: list[int], most: int) -> None:
    """Every piece is within the limit, and all but the last are full."""
    topics = topics_of(sizes)
    pieces = list(in_pieces(topics, most))
    lengths = [sum(len(topic.partitions) for topic in piece) for piece in pieces]
    assert all(length == most for length in lengths[:-1])
    assert all(0 < length <= most for length in lengths)
    assert all(topic.partitions for piece in pieces for topic in piece)
    assert topics == topics_of(sizes)
    assert put_together(pieces) == [topic for topic in topics if topic.partitions]


async def test_each_piece_is_asked_for() -> None:
    """One after the other; an answer may have to be waited for."""
    asked: list[list[int]] = []

    def ask(piece: list[OffsetDeleteRequestTopic]) -> Any:
        asked.append([each.partition_index for topic in piece for each in topic.partitions])
        number = len(asked)

        async def later() -> int:
            return number

        return later() if number % 2 else number

    count = topic_pieces.PIECE_PARTITIONS
    assert await ask_in_pieces(topics_of([2 * count + 1]), ask) == [1, 2, 3]
    assert [len(each) for each in asked] == [count, count, 1]
    assert await ask_in_pieces(topics_of([1, 1]), ask) == [4]
    assert await ask_in_pieces(topics_of([]), ask) == []
