"""Every message in every version comes back as it went out."""

import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.chunks import FileSlice, chunks_length, join_chunks
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.schema import decode, decoder, encode, encode_chunks
from tests.wire.catalog import every_message, every_version
from tests.wire.strategies import instances


@every_version()
def test_round_trip(cls: Any, version: int) -> None:
    """What is decoded equals what was encoded, and is encoded to the same bytes."""

    @settings(max_examples=10)
    @given(instances(cls, version))
    def check(message: Any) -> None:
        data = encode(message, version)
        again = decode(cls, version, data)
        assert again == message
        assert encode(again, version) == data

    check()


@every_version()
def test_defaults_round_trip(cls: Any, version: int) -> None:
    """A message of defaults can be encoded in every version."""
    message = cls()
    assert decode(cls, version, encode(message, version)) == message


@every_message()
def test_decoder_leaves_what_follows(cls: Any) -> None:
    """A decoder starts where it is told to and stops at the end of its message."""
    version = cls.MAX_VERSION
    data = encode(cls(), version)
    message, end = decoder(cls, version)(memoryview(b"abc" + data + b"xyz"), 3)
    assert message == cls()
    assert end == 3 + len(data)


@every_message()
def test_instances_share_nothing(cls: Any) -> None:
    """Lists and structures that are there by default belong to one instance each."""
    first, second = cls(), cls()
    for name in cls.__slots__:
        value = getattr(first, name)
        if isinstance(value, list) or hasattr(value, "__field_specs__"):
            assert value is not getattr(second, name)


def test_decoded_records_are_a_view_of_the_frame() -> None:
    """Records are not copied out of the frame, and can be patched in it."""
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"0123456789")])
    frame = bytearray(encode(ProduceRequest(topic_data=[topic]), 9))
    request = decode(ProduceRequest, 9, frame)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0:2] = b"!!"
    assert b"!!23456789" in frame


@pytest.mark.parametrize("version", range(4, 19))
@given(sizes=st.lists(st.sampled_from([1, 100, 5000]), max_size=4))
@settings(max_examples=5)
def test_file_slices_stay_slices(version: int, sizes: list[int]) -> None:
    """A file slice is handed on as it is, and the chunks together are what bytes would have given."""
    with tempfile.TemporaryFile() as file:
        file.write(bytes(range(256)) * 100)
        file.flush()
        slices = [FileSlice(file, size, size) for size in sizes]

        def response(records: list[Any]) -> FetchResponse:
            partitions = [PartitionData(partition_index=i, records=data) for i, data in enumerate(records)]
            return FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])

        chunks = encode_chunks(response(slices), version)
        assert [chunk for chunk in chunks if isinstance(chunk, FileSlice)] == slices
        plain = encode(response([piece.read() for piece in slices]), version)
        assert join_chunks(chunks) == plain
        assert chunks_length(chunks) == len(plain)
