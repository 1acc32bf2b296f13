"""Frames that no client library sends: what a broker takes as it is meant, and what it closes the
connection for.

Kafka is more lenient than Ottla in a few places, and on purpose: it reads any negative length as null,
takes tags in any order and more than once, and cuts a varint off at 32 bits. Those bytes close the
connection here.
"""

import struct

import pytest

from compat_tests.raw_client import ConnectionClosed, RawClient
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.headers import RequestHeader, decode_response_header, encode_request_header
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.schema import decode, encode

CORRELATION_ID = 5


def header(version: int) -> bytes:
    return encode_request_header(RequestHeader(ApiKey.METADATA, version, CORRELATION_ID, "raw"))


def ask(bootstrap: str, version: int, body: bytes) -> MetadataResponse:
    """The answer to a Metadata request of these bytes."""
    with RawClient.to(bootstrap) as client:
        client.send_frame(header(version) + body)
        frame = memoryview(client.receive_frame())
    correlation_id, position = decode_response_header(ApiKey.METADATA, version, frame)
    assert correlation_id == CORRELATION_ID
    return decode(MetadataResponse, version, frame[position:])


@pytest.mark.parametrize("version", [1, 8, 12])
def test_bytes_behind_a_request_are_ignored(bootstrap: str, version: int) -> None:
    """A request with more bytes than it needs is served."""
    answer = ask(bootstrap, version, encode(MetadataRequest(topics=[]), version) + b"\0\1\2 and more")
    assert len(answer.brokers) == 1
    assert answer.topics == []


def test_unknown_tagged_fields_are_ignored(bootstrap: str) -> None:
    """A newer client may say what this broker does not know."""
    body = encode(MetadataRequest(topics=[]), 12)[:-1] + b"\x02\x05\x01x\x06\x00"
    assert len(ask(bootstrap, 12, body).brokers) == 1


def test_name_that_is_not_utf8(bootstrap: str) -> None:
    """Such a topic name is not valid; the connection is not to blame."""
    answer = ask(bootstrap, 1, struct.pack(">ih2s", 1, 2, b"\xff\xfe"))
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_any_other_byte_than_0_is_true(bootstrap: str) -> None:
    """A boolean of 2 is served."""
    assert len(ask(bootstrap, 4, struct.pack(">ib", 0, 2)).brokers) == 1


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(header(1) + struct.pack(">ih", 1, -1), id="null where none may be"),
        pytest.param(header(1) + struct.pack(">i", 1000), id="array longer than the frame"),
        pytest.param(header(1) + struct.pack(">ih", 1, 100), id="string longer than the frame"),
        pytest.param(header(12) + b"\xff" * 6, id="varint without end"),
        pytest.param(header(99) + b"\x01\0\0\0\0", id="version of the future"),
        pytest.param(header(-1) + bytes(4), id="negative version"),
        pytest.param(struct.pack(">hhih", 200, 1, 1, -1), id="unknown key"),
        pytest.param(struct.pack(">hhih", 4, 1, 1, -1), id="removed key"),
        pytest.param(b"\0\x03", id="half a header"),
    ],
)
def test_connection_is_closed(bootstrap: str, frame: bytes) -> None:
    """There is no answer to bytes that are no request, or one that the broker does not serve."""
    with RawClient.to(bootstrap) as client:
        client.send_frame(frame)
        with pytest.raises(ConnectionClosed):
            client.receive_frame()
