"""Metadata in every version: what is asked for, what is created, what is refused."""

from typing import Any

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient, plain
from compat_tests.raw_topics import create_topic, describe, produce, wait_until_served
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ottla.wire.uuids import ZERO_UUID

VERSIONS = range(MetadataRequest.MIN_VERSION, MetadataRequest.MAX_VERSION + 1)
NOT_ASKED = -0x80000000
ALL_TOPIC_OPERATIONS = 3576
ALL_CLUSTER_OPERATIONS = 8096


def ask(raw: RawClient, version: int, *names: str, **more: Any) -> MetadataResponse:
    """Metadata of topics by name."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)
    response = raw.send(request, version)
    assert isinstance(response, MetadataResponse)
    return response


def outcomes(response: MetadataResponse) -> dict[str | None, tuple[str, bool]]:
    """Error and internal flag of every topic."""
    return {topic.name: (ErrorCode(topic.error_code).name, topic.is_internal) for topic in response.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic(version: int, raw: RawClient, broker: BrokerProcess, topic_name: str) -> None:
    """Everything a version can say about a topic and the cluster, and nothing a version cannot."""
    topic_id = create_topic(raw, topic_name, partitions=2)
    operations = {"include_topic_authorized_operations": version >= 8}
    operations["include_cluster_authorized_operations"] = 8 <= version <= 10
    response = plain(ask(raw, version, topic_name, **operations))
    (node,) = response["brokers"]
    cluster_id = response.pop("cluster_id")
    assert (cluster_id is not None) == (version >= 2)
    assert response == {
        "throttle_time_ms": 0,
        "brokers": [{"node_id": node["node_id"], "host": "127.0.0.1", "port": broker.port, "rack": None}],
        "controller_id": node["node_id"] if version >= 1 else -1,
        "topics": [
            {
                "error_code": 0,
                "name": topic_name,
                "topic_id": topic_id if version >= 10 else ZERO_UUID,
                "is_internal": False,
                "partitions": [
                    {
                        "error_code": 0,
                        "partition_index": index,
                        "leader_id": node["node_id"],
                        "leader_epoch": 0 if version >= 7 else -1,
                        "replica_nodes": [node["node_id"]],
                        "isr_nodes": [node["node_id"]],
                        "offline_replicas": [],
                    }
                    for index in (0, 1)
                ],
                "topic_authorized_operations": ALL_TOPIC_OPERATIONS if version >= 8 else NOT_ASKED,
            }
        ],
        "cluster_authorized_operations": ALL_CLUSTER_OPERATIONS if 8 <= version <= 10 else NOT_ASKED,
        "error_code": 0,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_and_none(version: int, raw: RawClient, topic_name: str) -> None:
    """Null is all topics and empty is none, but in version 0 empty is all."""
    create_topic(raw, topic_name)
    everything = raw.send(MetadataRequest(topics=None if version else []), version)
    assert topic_name in {topic.name for topic in everything.topics}
    assert all(topic.topic_authorized_operations == NOT_ASKED for topic in everything.topics)
    if version:
        assert ask(raw, version).topics == []


@pytest.mark.parametrize("version", range(4, MetadataRequest.MAX_VERSION + 1))
def test_names_that_do_not_exist(version: int, raw: RawClient, topic_name: str) -> None:
    """Unknown and impossible names have their errors, and are not created when the client does not want it."""
    names = (topic_name, "no good", "", ".", "..", "x" * 250, "__transaction_state")
    response = ask(raw, version, *names, allow_auto_topic_creation=False)
    assert outcomes(response) == {
        topic_name: ("UNKNOWN_TOPIC_OR_PARTITION", False),
        "no good": ("INVALID_TOPIC_EXCEPTION", False),
        "": ("INVALID_TOPIC_EXCEPTION", False),
        ".": ("INVALID_TOPIC_EXCEPTION", False),
        "..": ("INVALID_TOPIC_EXCEPTION", False),
        "x" * 250: ("INVALID_TOPIC_EXCEPTION", False),
        "__transaction_state": ("UNKNOWN_TOPIC_OR_PARTITION", True),
    }
    assert ErrorCode(describe(raw, topic_name).error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_unknown_topics_have_operations_too(raw: RawClient, topic_name: str) -> None:
    """Authorized operations are told even of a topic that does not exist."""
    response = ask(
        raw, 12, topic_name, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    assert response.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_creation_by_asking(version: int, raw: RawClient, topic_name: str) -> None:
    """A topic that is asked for comes into being, at the latest when the client asks again, and can be used."""

    def named() -> dict[str | None, tuple[str, bool]]:
        return outcomes(ask(raw, version, topic_name, "no good"))

    expected = {topic_name: ("NONE", False), "no good": ("INVALID_TOPIC_EXCEPTION", False)}
    eventually(named, expected)
    wait_until_served(raw, topic_name, 1)
    assert produce(raw, topic_name, [1_700_000_000_000]).base_offset == 0


def test_a_name_given_twice(raw: RawClient, topic_name: str) -> None:
    """One answer for one topic."""
    create_topic(raw, topic_name)
    assert [topic.name for topic in ask(raw, 12, topic_name, topic_name).topics] == [topic_name]


@pytest.mark.parametrize("version", [12, 13])
def test_by_id(version: int, raw: RawClient, topic_name: str) -> None:
    """Ids find topics, unknown ids are told, and where an id is given names are not looked at."""
    topic_id = create_topic(raw, topic_name)
    unknown = b"\x01" * 16
    wanted = [
        MetadataRequestTopic(name=None, topic_id=topic_id),
        MetadataRequestTopic(name=None, topic_id=unknown),
        MetadataRequestTopic(name=topic_name + "-other"),
    ]
    response = raw.send(MetadataRequest(topics=wanted, include_topic_authorized_operations=True), version)
    found = {topic.topic_id: topic for topic in response.topics}
    assert found.keys() == {topic_id, unknown}
    assert (found[topic_id].error_code, found[topic_id].name) == (ErrorCode.NONE, topic_name)
    assert found[unknown] == MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=unknown
    )


@pytest.mark.parametrize("version", [10, 11])
def test_ids_too_early(version: int, raw: RawClient, topic_name: str) -> None:
    """Versions 10 and 11 have room for ids, but do not look anything up by them."""
    by_id = MetadataRequestTopic(name="n", topic_id=b"\x01" * 16)
    without_name = MetadataRequestTopic(name=None)
    for topic in (by_id, without_name):
        response = raw.send(MetadataRequest(topics=[topic]), version)
        assert response.brokers == []
        assert [(answered.error_code, answered.name) for answered in response.topics] == [
            (ErrorCode.INVALID_REQUEST, topic.name or "")
        ]
