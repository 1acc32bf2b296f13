"""Request and response headers, in both versions."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.api_keys import FIRST_FLEXIBLE, ApiKey, api_key_infos
from ottla.wire.errors import ErrorCode, MalformedMessage
from ottla.wire.headers import (
    RequestHeader,
    UnknownApiKey,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from ottla.wire.primitives import unsigned_varint
from tests.wire.memory import allocates_little

KEYS = st.sampled_from(sorted(FIRST_FLEXIBLE))
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


@given(st.builds(RequestHeader, KEYS, INT16, INT32, st.none() | st.text(max_size=200)))
def test_request_header_round_trip(header: RequestHeader) -> None:
    """Any key with versions, in any version, with any client id."""
    data = b"??" + encode_request_header(header)
    assert decode_request_header(memoryview(data + b"body"), 2) == (header, len(data))


@given(KEYS, INT16, INT32)
def test_response_header_round_trip(api_key: int, version: int, correlation_id: int) -> None:
    """The correlation id comes back, and the body is where it should be."""
    data = encode_response_header(api_key, version, correlation_id)
    assert decode_response_header(api_key, version, memoryview(data + b"body")) == (correlation_id, len(data))


def test_golden_request_headers() -> None:
    """The bytes of both versions; the client id keeps its two-byte length in the flexible one."""
    plain = RequestHeader(ApiKey.METADATA, 8, 7, "me")
    assert encode_request_header(plain) == b"\x00\x03\x00\x08\x00\x00\x00\x07\x00\x02me"
    flexible = RequestHeader(ApiKey.METADATA, 9, 7, None)
    assert encode_request_header(flexible) == b"\x00\x03\x00\x09\x00\x00\x00\x07\xff\xff\x00"


@pytest.mark.parametrize("version", range(6))
def test_api_versions_response_header_is_never_flexible(version: int) -> None:
    """A client reads it before it knows which versions the broker has."""
    assert encode_response_header(ApiKey.API_VERSIONS, version, 9) == b"\0\0\0\x09"


def test_response_header_is_flexible_with_its_message() -> None:
    """All other responses have tagged fields in the header from their first flexible version on."""
    for info in api_key_infos():
        if info.max_version < 0 or info.api_key == ApiKey.API_VERSIONS:
            continue
        for version in range(info.min_version, info.max_version + 1):
            length = len(encode_response_header(info.api_key, version, 1))
            assert length == (5 if version >= info.first_flexible else 4), info.name


@pytest.mark.parametrize("api_key", [-1, 4, 5, 6, 7, 93, 94, 1000])
def test_unknown_key_tells_its_ids(api_key: int) -> None:
    """Keys nobody has, removed keys and keys of later Kafkas."""
    with pytest.raises(UnknownApiKey) as caught:
        decode_request_header(memoryview(struct.pack(">hhih", api_key, 2, 77, -1)))
    error = caught.value
    assert (error.code, error.api_key, error.api_version, error.correlation_id) == (
        ErrorCode.UNSUPPORTED_VERSION,
        api_key,
        2,
        77,
    )


@given(st.binary(max_size=60))
def test_random_headers(data: bytes) -> None:
    """Random bytes are a header by chance, an unknown key, or malformed."""
    try:
        _, end = decode_request_header(memoryview(data))
    except (MalformedMessage, UnknownApiKey):
        return
    assert end <= len(data)


def test_every_truncation_is_malformed() -> None:
    """A header cut off anywhere."""
    data = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 3, 1, "client"))
    for length in range(len(data)):
        with pytest.raises(MalformedMessage):
            decode_request_header(memoryview(data[:length]))


def test_negative_client_id_length() -> None:
    """Only -1 means that there is no client id."""
    with pytest.raises(MalformedMessage, match="client_id: length -2"):
        decode_request_header(memoryview(struct.pack(">hhih", 3, 0, 1, -2)))


def test_twenty_million_tagged_fields() -> None:
    """A header full of tagged fields, which a client may send before it has authenticated, costs nothing."""
    count = 20_000_000
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 3, 1, None))[:-1]
    frame = memoryview(header + unsigned_varint(count) + bytes(2 * count))
    complaint = "header tags: 20000000 tagged fields"
    with allocates_little(), pytest.raises(MalformedMessage, match=complaint):
        decode_request_header(frame)


def test_unknown_header_tags_are_stepped_over() -> None:
    """Newer clients may say more than we know."""
    header = RequestHeader(ApiKey.API_VERSIONS, 3, 1, "c")
    data = encode_request_header(header)[:-1] + b"\x02\x00\x02ab\x09\x00"
    assert decode_request_header(memoryview(data + b"body")) == (header, len(data))
