"""Every API and version served, asked nonsense: an answer that can be read, or the connection closed, never a bug."""

from __future__ import annotations

import logging
import random
import socket
import struct
from collections.abc import Iterator

import pytest

from ottla.server.registry import Registration, load_registry
from ottla.testing import Broker
from ottla.wire.api_keys import ApiKey
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.schema import decode
from tests.server.bad_frames import CORRELATION_ID, request
from tests.server.random_requests import RandomRequests
from tests.wire.catalog import all_messages

REQUESTS_PER_VERSION = 30
NAMES = ["orders", "payments"]
# Of an unknown kind (0) are elements that make the request none at all to Kafka.
ENDED_BY_UNKNOWN_KINDS = {ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS}
RESPONSES = {cls.API_KEY: cls for cls in all_messages() if cls.KIND == "response"}
SERVED = sorted(load_registry().values(), key=lambda registration: registration.api_key)
EVERY_VERSION = [
    pytest.param(registration, version, id=f"{registration.api_key.name.lower()}-v{version}")
    for registration in SERVED
    for version in range(registration.min_version, registration.max_version + 1)
]


class Client:
    """Connects again when the broker has closed the connection."""

    def __init__(self, broker: Broker) -> None:
        self._address = (broker.host, broker.port)
        self._connect()

    def _connect(self) -> None:
        self.socket = socket.create_connection(self._address, timeout=10)
        self._stream = self.socket.makefile("rb")

    def ask(self, data: bytes) -> bytes | None:
        """The answer without its length, or None if the connection was closed instead."""
        try:
            self.socket.sendall(data)
            size = self._stream.read(4)
            if len(size) == 4:
                return self._stream.read(struct.unpack(">i", size)[0])
        except (ConnectionError, TimeoutError):  # damage may have made it a fetch that waits for long
            pass
        self.close()
        self._connect()
        return None

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    client = Client(broker)
    yield client
    client.close()


def topic_ids(client: Client) -> list[bytes]:
    """The ids of the topics by name, which are made if nonsense has deleted them."""
    topics = [MetadataRequestTopic(name=name) for name in NAMES]
    answer = client.ask(request(MetadataRequest(topics=topics), 12))
    assert answer is not None
    _, position = decode_response_header(ApiKey.METADATA, 12, memoryview(answer))
    return [topic.topic_id for topic in decode(MetadataResponse, 12, answer[position:]).topics]


def bugs(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def is_unanswered(message: object) -> bool:
    return getattr(message, "acks", None) == 0


@pytest.mark.parametrize(("registration", "version"), EVERY_VERSION)
def test_nonsense_is_answered(
    registration: Registration, version: int, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Well-formed requests of any content get an answer of their own API and version."""
    requests = RandomRequests(registration.api_key * 100 + version, NAMES, topic_ids(client))
    for _ in range(REQUESTS_PER_VERSION):
        message = requests.draw(registration.request_type, version)
        if is_unanswered(message):
            message.acks = 1
        answer = client.ask(request(message, version))
        assert not bugs(caplog), message
        api_key = registration.api_key
        if answer is None and api_key in ENDED_BY_UNKNOWN_KINDS:
            continue
        assert answer is not None, message
        correlation_id, position = decode_response_header(api_key, version, memoryview(answer))
        assert correlation_id == CORRELATION_ID
        decode(RESPONSES[api_key], version, answer[position:])


@pytest.mark.parametrize(("registration", "version"), EVERY_VERSION)
def test_damaged_requests_do_no_harm(
    registration: Registration, version: int, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests with bytes changed, cut out or put in are answered or end the connection, and find no bug."""
    requests = RandomRequests(registration.api_key * 1000 + version, NAMES, topic_ids(client))
    chance = random.Random(registration.api_key * 7919 + version)
    for _ in range(REQUESTS_PER_VERSION):
        message = requests.draw(registration.request_type, version)
        if is_unanswered(message):
            message.acks = 1
        damaged = _damage(request(message, version)[4:], chance)
        client.ask(struct.pack(">i", len(damaged)) + damaged)
        assert not bugs(caplog), message
    assert topic_ids(client)


def _damage(data: bytes, chance: random.Random) -> bytes:
    """Change the body, but neither the api key nor the version."""
    body = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        position = chance.randrange(min(8, len(body) - 1), len(body))
        kind = chance.randrange(3)
        if kind == 0:
            body[position] = chance.randrange(256)
        elif kind == 1 and len(body) > 12:
            del body[position : position + chance.randint(1, 4)]
        else:
            body[position:position] = chance.randbytes(chance.randint(1, 4))
    return bytes(body)
