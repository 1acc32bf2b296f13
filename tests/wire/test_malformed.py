"""Bytes that are no message: the only answer is MalformedMessage, and nothing is allocated that the bytes
do not pay for.
"""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.primitives import MAX_TAGGED_FIELDS, unsigned_varint
from ottla.wire.schema import decode, decoder, encode
from tests.wire.catalog import every_message, every_version
from tests.wire.memory import allocates_little
from tests.wire.strategies import instances


def decodes_or_is_malformed(cls: Any, version: int, data: bytes) -> None:
    try:
        message, end = decoder(cls, version)(memoryview(data), 0)
    except MalformedMessage:
        return
    assert isinstance(message, cls)
    assert end <= len(data)


@every_version()
def test_random_bytes(cls: Any, version: int) -> None:
    """Random bytes are a message by chance, or malformed."""

    @settings(max_examples=15)
    @given(st.binary(max_size=200))
    def check(data: bytes) -> None:
        decodes_or_is_malformed(cls, version, data)

    check()


@every_version()
def test_changed_bytes(cls: Any, version: int) -> None:
    """A good message with some bytes overwritten, removed or put in is a message by chance, or malformed."""

    @settings(max_examples=15)
    @given(instances(cls, version), st.data())
    def check(message: Any, data: st.DataObject) -> None:
        changed = bytearray(encode(message, version))
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(changed)))
            changed[at : at + data.draw(st.integers(0, 4))] = data.draw(
                st.binary(max_size=4)
                | st.sampled_from([b"\xff", b"\x7f", b"\0", b"\x80", b"\xff\xff\xff\xff\x07"])
            )
        decodes_or_is_malformed(cls, version, bytes(changed))

    check()


@every_message()
def test_every_truncation(cls: Any) -> None:
    """A message cut off anywhere is malformed."""

    @settings(max_examples=5)
    @given(instances(cls, cls.MAX_VERSION))
    def check(message: Any) -> None:
        data = encode(message, cls.MAX_VERSION)
        for length in range(min(len(data), 300)):
            with pytest.raises(MalformedMessage):
                decode(cls, cls.MAX_VERSION, data[:length])

    check()


def test_bytes_behind_the_end() -> None:
    """`decode` wants the whole buffer to be the message."""
    with pytest.raises(MalformedMessage, match="1 bytes behind the end of MetadataRequest"):
        decode(MetadataRequest, 12, encode(MetadataRequest(), 12) + b"\0")


def test_path_names_the_field() -> None:
    """The error says which element and field is bad."""
    topics = [FetchTopic(topic="a", partitions=[FetchPartition()]), FetchTopic(topic="b")]
    data = encode(FetchRequest(topics=topics), 12)
    broken = data.replace(b"\x02b", b"\x62b")
    with pytest.raises(MalformedMessage) as caught:
        decode(FetchRequest, 12, broken)
    assert caught.value.path == "topics[1].topic"
    assert str(caught.value).startswith("topics[1].topic: string of 97 bytes, ")


@pytest.mark.parametrize("count", [2**31 - 2, 10_000_000, 17])
def test_array_count_beyond_the_frame(count: int) -> None:
    """An array longer than its bytes can be is refused before a list is made."""
    for version, prefix in ((8, struct.pack(">i", count)), (12, unsigned_varint(count + 1))):
        complaint = r"^topics: \d+ elements in 16 bytes$"
        with allocates_little(), pytest.raises(MalformedMessage, match=complaint):
            decode(MetadataRequest, version, prefix + bytes(16))


def test_array_count_is_held_against_the_smallest_element() -> None:
    """A partition of a Fetch v4 takes 16 bytes, so 100 bytes cannot hold seven."""
    head = struct.pack(">iiiibi", -1, 0, 0, 0, 0, 1) + struct.pack(">h1s", 1, b"t")
    with pytest.raises(MalformedMessage, match="7 elements in 100 bytes"):
        decode(FetchRequest, 4, head + struct.pack(">i", 7) + bytes(100))


@pytest.mark.parametrize("length", [-2, -100, -(2**15)])
def test_negative_string_length(length: int) -> None:
    """Only -1 means null."""
    data = struct.pack(">ih", 1, length) + bytes(20)
    with pytest.raises(MalformedMessage, match=f"length {length}"):
        decode(MetadataRequest, 1, data)


@pytest.mark.parametrize("count", [-2, -(2**31)])
def test_negative_array_count(count: int) -> None:
    """Only -1 means null."""
    with pytest.raises(MalformedMessage, match=f"length {count}"):
        decode(MetadataRequest, 1, struct.pack(">i", count) + bytes(20))


@pytest.mark.parametrize(
    ("version", "data"),
    [(1, struct.pack(">ih", 1, -1)), (9, b"\x02\x00\x00\x00\x00\x00\x00"), (0, struct.pack(">i", -1))],
)
def test_null_where_none_may_be(version: int, data: bytes) -> None:
    """A null topic name before version 10, a null list of topics in version 0."""
    with pytest.raises(MalformedMessage, match="null, but the field is not nullable"):
        decode(MetadataRequest, version, data)


@pytest.mark.parametrize(
    ("varint", "complaint"),
    [
        (b"\xff" * 5, "longer than five bytes"),
        (b"\xff" * 4 + b"\x7f", "beyond 31 bits"),
        (b"\x80" * 4, "end early"),
    ],
)
def test_bad_varints(varint: bytes, complaint: str) -> None:
    """Too long, too large, cut off."""
    with pytest.raises(MalformedMessage, match=f"^topics: .*{complaint}"):
        decode(MetadataRequest, 12, varint)


def test_string_longer_than_kafka_allows() -> None:
    """A compact string of more than 32767 bytes is refused though its bytes are there, as Kafka does."""
    longest = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32767)])
    data = encode(longest, 12)
    assert decode(MetadataRequest, 12, data) == longest
    with pytest.raises(MalformedMessage, match="string of 32768 bytes"):
        decode(MetadataRequest, 12, data.replace(unsigned_varint(32768), unsigned_varint(32769)) + b"x")
    with pytest.raises(ValueError, match="longer than 32767"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]), 12)


def test_text_that_is_not_utf8_is_read_as_kafka_reads_it() -> None:
    """Broken UTF-8 becomes U+FFFD; such a name is then refused by name, not by cutting the client off."""
    data = encode(MetadataRequest(topics=[MetadataRequestTopic(name="ab")]), 1).replace(b"ab", b"\xff\xfe")
    request = decode(MetadataRequest, 1, data)
    assert request.topics is not None
    assert request.topics[0].name == "��"


def test_text_that_is_not_utf8_must_not_grow_beyond_a_string() -> None:
    """Mending makes three bytes of one; what no answer could name again is refused when it is read."""
    data = encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 10_923)]), 1)
    with pytest.raises(MalformedMessage, match="not UTF-8, 32769 bytes"):
        decode(MetadataRequest, 1, data.replace(b"x", b"\xff"))
    data = encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 10_922)]), 12)
    request = decode(MetadataRequest, 12, data.replace(b"x", b"\xff"))
    assert decode(MetadataRequest, 12, encode(request, 12)) == request


def tagged_section(count: int, fields: bytes) -> bytes:
    """An ApiVersions v3 request with this section of tagged fields."""
    return b"\x02a\x02b" + unsigned_varint(count) + fields


def test_unknown_tagged_fields_are_stepped_over() -> None:
    """Fields of newer clients are no error and leave no trace."""
    data = tagged_section(2, b"\x05\x03abc" + b"\x06\x00")
    assert decode(ApiVersionsRequest, 3, data) == ApiVersionsRequest("a", "b")


@pytest.mark.parametrize("tags", [b"\x05\x00\x05\x00", b"\x05\x00\x04\x00"])
def test_tags_must_ascend(tags: bytes) -> None:
    """The same tag twice, or a smaller one after a larger one."""
    with pytest.raises(MalformedMessage, match="after tag 5"):
        decode(ApiVersionsRequest, 3, tagged_section(2, tags))


def test_twenty_million_tagged_fields() -> None:
    """A body full of two-byte tagged fields is refused by its count, before the first is looked at."""
    count = 20_000_000
    data = tagged_section(count, bytes(2 * count))
    complaint = f"{count} tagged fields are more than {MAX_TAGGED_FIELDS}"
    with allocates_little(), pytest.raises(MalformedMessage, match=complaint):
        decoder(ApiVersionsRequest, 3)(memoryview(data), 0)


def test_tagged_count_beyond_the_frame() -> None:
    """A count that the bytes left cannot hold."""
    with pytest.raises(MalformedMessage, match="3 tagged fields in 4 bytes"):
        decode(ApiVersionsRequest, 3, tagged_section(3, bytes(4)))


def test_tagged_field_longer_than_the_frame() -> None:
    """The size of a tagged field is held against the bytes left."""
    with pytest.raises(MalformedMessage, match="tagged field 5 of 100 bytes, 1 bytes left"):
        decode(ApiVersionsRequest, 3, tagged_section(1, b"\x05\x64\x00"))


def test_known_tagged_field_must_fill_its_size() -> None:
    """A known field that ends before or after its size says is malformed, with its name."""
    request = FetchRequest(cluster_id="abc")
    data = encode(request, 12)
    assert data.endswith(b"\x01\x00\x04\x04abc")
    for size, rest in ((b"\x05", b"\x04abcd"), (b"\x03", b"\x04ab")):
        with pytest.raises(MalformedMessage, match=r"^cluster_id: "):
            decode(FetchRequest, 12, data[:-5] + size + rest)


def test_negative_records_length() -> None:
    """Records of a negative length other than null's."""
    good = encode(ProduceRequest(), 3)
    topics = struct.pack(">ih1siii", 1, 1, b"t", 1, 0, -5)
    with pytest.raises(MalformedMessage, match=r"^topic_data\[0\]\.partition_data\[0\]\.records: length -5$"):
        decode(ProduceRequest, 3, good[:-4] + topics)


def test_deep_arrays_cannot_multiply() -> None:
    """Each array is held against the bytes left where it stands, so nested counts cannot multiply."""
    data = (
        struct.pack(">i", 1000)
        + (struct.pack(">h", 0) + struct.pack(">ih", 1, 1) + struct.pack(">i", 1000)) * 1000
    )
    with pytest.raises(MalformedMessage):
        decode(CreateTopicsRequest, 2, data[:2000])
