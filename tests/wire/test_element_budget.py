"""How many array elements a stranger's message may have."""

from __future__ import annotations

import struct

import pytest

from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.schema import decode, decode_bounded, encode


def test_elements_of_all_arrays_count_together() -> None:
    """Nested elements count as much as outer ones, and the limit is exact."""
    topics = [
        FetchTopic(topic="t", partitions=[FetchPartition(partition=n) for n in range(9)]) for _ in range(10)
    ]
    request = FetchRequest(topics=topics)
    data = memoryview(encode(request, 4))
    assert decode_bounded(FetchRequest, 4, data, 0, 100) == decode(FetchRequest, 4, data)
    with pytest.raises(MalformedMessage, match=r"topics\[9\].*more than a request may have"):
        decode_bounded(FetchRequest, 4, data, 0, 99)


def test_a_frame_of_empty_strings_is_refused_before_any_is_made() -> None:
    """Millions of elements in few bytes are refused by their count alone."""
    data = struct.pack(">i", 5_000_000) + bytes(10_000_000)
    with pytest.raises(MalformedMessage, match="5000000 elements"):
        decode_bounded(MetadataRequest, 1, memoryview(data), 0, 250_000)


def test_the_limit_ends_with_the_message() -> None:
    """One message's limit does not bind the next."""
    data = struct.pack(">i", 300) + struct.pack(">h", 0) * 300
    with pytest.raises(MalformedMessage):
        decode_bounded(MetadataRequest, 1, memoryview(data), 0, 299)
    assert len(decode(MetadataRequest, 1, data).topics or ()) == 300
