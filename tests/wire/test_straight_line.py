"""The straight-line codecs of frequent messages: whatever they say, the thorough ones say too."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.compile_decode import MAX_ORDINARY_ELEMENTS, compile_decoder
from ottla.wire.compile_encode import compile_encoder, parts_adder
from ottla.wire.errors import MalformedMessage, NotOrdinary
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.schema import decode_bounded, encode
from ottla.wire.straight_line import straight_decoder, straight_encoder
from tests.wire.catalog import all_messages
from tests.wire.strategies import instances

GIVES_UP = (NotOrdinary, MalformedMessage, IndexError, struct.error)
FREQUENT = [
    pytest.param(cls, version, id=f"{cls.__name__}-{version}")
    for cls in all_messages()
    if cls.FREQUENT
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
]


def thorough_bytes(cls: Any, version: int, message: Any) -> list[bytes]:
    chunks: list[Any] = []
    compile_encoder(cls, version, version >= cls.FLEXIBLE)(message, chunks)
    return [bytes(chunk) for chunk in chunks]


@pytest.mark.parametrize(("cls", "version"), FREQUENT)
def test_encoding_agrees(cls: Any, version: int) -> None:
    """The same chunks, or none."""
    quick = straight_encoder(cls, version)

    @settings(max_examples=20)
    @given(instances(cls, version))
    def check(message: Any) -> None:
        try:
            parts = quick(message)
        except NotOrdinary:
            return
        chunks: list[Any] = []
        parts_adder(cls, version)(parts, chunks)
        assert [bytes(chunk) for chunk in chunks] == thorough_bytes(cls, version, message)

    check()


@pytest.mark.parametrize(("cls", "version"), FREQUENT)
def test_decoding_agrees(cls: Any, version: int) -> None:
    """Good bytes and damaged ones: what is decoded at all is what the thorough decoder makes of it."""
    quick = straight_decoder(cls, version)
    thorough = compile_decoder(cls, version, version >= cls.FLEXIBLE)

    @settings(max_examples=30)
    @given(instances(cls, version), st.data())
    def check(message: Any, data: st.DataObject) -> None:
        encoded = bytearray(b"".join(thorough_bytes(cls, version, message)))
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, len(encoded)))
            encoded[at : at + data.draw(st.integers(0, 4))] = data.draw(
                st.binary(max_size=4)
                | st.sampled_from([b"\xff", b"\x7f", b"\0", b"\x80", b"\xff\xff\xff\xff\x07"])
            )
        view = memoryview(encoded)
        try:
            decoded = quick(view, 0)
        except GIVES_UP:
            return
        assert decoded == thorough(view, 0)[0]

    check()


@pytest.mark.parametrize("version", range(3, 14))
def test_an_ordinary_produce_is_not_given_up(version: int) -> None:
    """What a producer sends, and what it is answered, takes the quick way."""
    topic = TopicProduceData(partition_data=[PartitionProduceData(3, b"records")])
    if version < 13:
        topic.name = "orders"
    else:
        topic.topic_id = bytes(range(16))
    request = ProduceRequest(None, -1, 30_000, [topic])
    view = memoryview(encode(request, version))
    assert straight_decoder(ProduceRequest, version)(view, 0) == request
    answer = TopicProduceResponse(topic.name, topic.topic_id, [PartitionProduceResponse(3, 0, 77)])
    response = ProduceResponse([answer])
    assert b"".join(straight_encoder(ProduceResponse, version)(response)) == encode(response, version)


def test_many_elements_are_left_to_the_thorough_decoder() -> None:
    """The count of elements is bounded over all arrays together, nested ones included."""
    few = FetchTopic("t", partitions=[FetchPartition(0)] * (MAX_ORDINARY_ELEMENTS // 2 - 1))
    within = FetchRequest(topics=[few, few])
    beyond = FetchRequest(topics=[few, few, FetchTopic("u", partitions=[FetchPartition(0)])])
    quick = straight_decoder(FetchRequest, 12)
    assert quick(memoryview(encode(within, 12)), 0) == within
    view = memoryview(encode(beyond, 12))
    with pytest.raises(NotOrdinary):
        quick(view, 0)
    assert decode_bounded(FetchRequest, 12, view, 0, 5_000) == beyond


def test_errors_name_the_field() -> None:
    """A malformed message is refused in the words of the thorough decoder."""
    topic = TopicProduceData("t", partition_data=[PartitionProduceData(0, b"records")])
    data = encode(ProduceRequest(None, 1, 1, [topic]), 9)
    with pytest.raises(MalformedMessage) as caught:
        decode_bounded(ProduceRequest, 9, memoryview(data)[:-8], 0, 5_000)
    assert caught.value.path == "topic_data[0].partition_data[0].records"
