"""ApiVersions in every version, and what happens to versions nobody knows."""

import struct
from functools import partial

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.eventually import eventually
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import ConnectionClosed, RawClient
from compat_tests.raw_topics import create_topic
from ottla.wire.api_keys import ApiKey, api_key_info
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.schema import decode

VERSIONS = range(ApiVersionsRequest.MIN_VERSION, ApiVersionsRequest.MAX_VERSION + 1)
SERVED = {1, 2, 3, 10, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 43, 44, 60, 61, 68, 69, 74, 75}
NAMED = {"client_software_name": "raw-client", "client_software_version": "1.0"}


def ask(raw: RawClient, version: int, **more: str) -> ApiVersionsResponse:
    response = raw.send(ApiVersionsRequest(**{**NAMED, **more}), version)
    assert isinstance(response, ApiVersionsResponse)
    return response


@pytest.mark.parametrize("version", VERSIONS)
def test_ranges(raw: RawClient, broker: BrokerProcess, version: int) -> None:
    """Every advertised range is Apache Kafka 4.3's own; Produce begins at 0 for librdkafka's sake."""
    response = ask(raw, version)
    assert response.error_code == 0
    ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert ranges.pop(ApiKey.PRODUCE) == (0, 13)
    expected = {}
    for key in ranges:
        info = api_key_info(ApiKey(key))
        expected[key] = (info.min_version, info.max_version)
    assert ranges == expected
    if isinstance(broker, OttlaProcess):
        assert set(ranges) >= SERVED


def test_features(raw: RawClient) -> None:
    """metadata.version is there, finalized at what Kafka 4.3 writes; levels from 0 are told from 4 on only."""
    old, new = ask(raw, 3), ask(raw, 4)
    assert {feature.name for feature in old.supported_features if feature.min_version == 0} == set()
    supported = {
        feature.name: (feature.min_version, feature.max_version) for feature in new.supported_features
    }
    assert supported["metadata.version"] == (7, 30)
    assert supported["kraft.version"] == (0, 1)
    finalized = {
        each.name: (each.min_version_level, each.max_version_level) for each in new.finalized_features
    }
    assert finalized["metadata.version"] == (30, 30)
    assert new.finalized_features_epoch > 0


def test_each_version_tells_of_the_metadata_as_they_are(raw: RawClient) -> None:
    """However often it was asked before."""
    for number in range(2):
        before = {version: ask(raw, version).finalized_features_epoch for version in (3, 4)}
        create_topic(raw, f"t{number}")
        for version, epoch in before.items():
            eventually(partial(_tells_of_more, raw, version, epoch), True)


def _tells_of_more(raw: RawClient, version: int, epoch: int) -> bool:
    return ask(raw, version).finalized_features_epoch > epoch


@pytest.mark.parametrize("name", ["", "-", "a b", "a-", "ü"])
def test_clients_must_name_themselves_well(raw: RawClient, name: str) -> None:
    """Names end up in metrics."""
    assert ErrorCode(ask(raw, 3, client_software_name=name).error_code).name == "INVALID_REQUEST"


def test_an_unknown_version_is_answered_in_version_0(raw: RawClient) -> None:
    """With the range that works, so that the client can ask again on the same connection (KIP-511)."""
    raw.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0\x05abcd\0")
    frame = raw.receive_frame()
    assert frame[:4] == struct.pack(">i", 7)
    response = decode(ApiVersionsResponse, 0, frame[4:])
    assert ErrorCode(response.error_code).name == "UNSUPPORTED_VERSION"
    ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert ranges == {ApiKey.API_VERSIONS: (0, 4)}
    assert ask(raw, 4).error_code == 0


@pytest.mark.parametrize(
    "header",
    [
        struct.pack(">hhih", ApiKey.METADATA, MetadataRequest.MAX_VERSION + 1, 1, -1),
        struct.pack(">hhih", ApiKey.PRODUCE, 2, 1, -1),
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", ApiKey.LEADER_AND_ISR, 0, 1, -1),
    ],
    ids=["too new", "too old", "no such key", "removed key"],
)
def test_other_unknown_versions_and_keys_close_the_connection(raw: RawClient, header: bytes) -> None:
    """There is no answer that such a client could read."""
    raw.send_frame(header + bytes(20))
    with pytest.raises(ConnectionClosed):
        raw.receive_frame()
