"""DescribeCluster, DescribeTopicPartitions, FindCoordinator, ElectLeaders: the cluster as clients ask for it."""

import functools

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient, plain
from compat_tests.raw_topics import create_topic, describe
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest

NOT_ASKED = -0x80000000
ALL_CLUSTER_OPERATIONS = 8096
ALL_TOPIC_OPERATIONS = 3576
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def node_id(raw: RawClient) -> int:
    """The id of the only broker."""
    (node,) = raw.send(MetadataRequest(topics=[]), 12).brokers
    return int(node.node_id)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("with_operations", [True, False])
def test_describe_cluster(
    version: int, with_operations: bool, raw: RawClient, broker: BrokerProcess, node_id: int
) -> None:
    """One broker, which is taken for the controller, at its advertised address."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=with_operations, include_fenced_brokers=version >= 2
    )
    response = plain(raw.send(request, version))
    assert response.pop("cluster_id") == raw.send(MetadataRequest(topics=[]), 12).cluster_id
    assert response == {
        "throttle_time_ms": 0,
        "error_code": 0,
        "error_message": None,
        "endpoint_type": 1,
        "controller_id": node_id,
        "brokers": [
            {"broker_id": node_id, "host": "127.0.0.1", "port": broker.port, "rack": None, "is_fenced": False}
        ],
        "cluster_authorized_operations": ALL_CLUSTER_OPERATIONS if with_operations else NOT_ASKED,
    }


@pytest.mark.parametrize("version", [1, 2])
def test_endpoints_of_another_type(version: int, raw: RawClient) -> None:
    """A broker's listener does not tell of controllers, nor of what it does not know."""
    refused = {
        2: (
            "MISMATCHED_ENDPOINT_TYPE",
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        3: ("UNSUPPORTED_ENDPOINT_TYPE", "Unsupported endpoint type 3"),
    }
    for endpoint_type, expected in refused.items():
        response = raw.send(DescribeClusterRequest(endpoint_type=endpoint_type), version)
        assert (ErrorCode(response.error_code).name, response.error_message) == expected
        assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


def partitions_of(
    raw: RawClient, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    """One page of partitions."""
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response = raw.send(request, 0)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


Page = tuple[list[tuple[str | None, str, list[int]]], tuple[str, int] | None]


def page(response: DescribeTopicPartitionsResponse) -> Page:
    """(name, error, partitions) of the topics, and the cursor."""
    topics = [
        (
            topic.name,
            ErrorCode(topic.error_code).name,
            [partition.partition_index for partition in topic.partitions],
        )
        for topic in response.topics
    ]
    cursor = response.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_describe_topic_partitions(raw: RawClient, node_id: int, topic_name: str) -> None:
    """Every field of a topic and its partitions."""
    topic_id = create_topic(raw, topic_name, partitions=2)
    (topic,) = plain(partitions_of(raw, topic_name))["topics"]
    assert topic == {
        "error_code": 0,
        "name": topic_name,
        "topic_id": topic_id,
        "is_internal": False,
        "partitions": [
            {
                "error_code": 0,
                "partition_index": index,
                "leader_id": node_id,
                "leader_epoch": 0,
                "replica_nodes": [node_id],
                "isr_nodes": [node_id],
                "eligible_leader_replicas": [],
                "last_known_elr": [],
                "offline_replicas": [],
            }
            for index in (0, 1)
        ],
        "topic_authorized_operations": ALL_TOPIC_OPERATIONS,
    }


def test_pages(raw: RawClient, topic_name: str) -> None:
    """Topics in order, pages of the size asked for, and a cursor to go on with, which may name anything."""
    first, missing, second = (f"{topic_name}-{letter}" for letter in "abc")
    create_topic(raw, first, partitions=3)
    create_topic(raw, second, partitions=2)
    asked = (second, missing, first, first)
    unknown: tuple[str, str, list[int]] = (missing, "UNKNOWN_TOPIC_OR_PARTITION", [])
    everything = [(first, "NONE", [0, 1, 2]), unknown, (second, "NONE", [0, 1])]
    assert page(partitions_of(raw, *asked)) == (everything, None)
    assert page(partitions_of(raw, *asked, limit=2)) == ([(first, "NONE", [0, 1])], (first, 2))
    assert page(partitions_of(raw, *asked, limit=3)) == ([(first, "NONE", [0, 1, 2])], (missing, 0))
    for smallest in (1, 0, -7):
        assert page(partitions_of(raw, *asked, limit=smallest)) == ([(first, "NONE", [0])], (first, 1))
    assert page(partitions_of(raw, *asked, limit=2, cursor=(first, 2))) == (
        [(first, "NONE", [2]), unknown, (second, "NONE", [0])],
        (second, 1),
    )
    assert page(partitions_of(raw, *asked, cursor=(second, 1))) == ([(second, "NONE", [1])], None)
    assert page(partitions_of(raw, *asked, cursor=(second, 9))) == ([(second, "NONE", [])], None)


def test_all_topics_in_pages(raw: RawClient, topic_name: str) -> None:
    """Without names all topics come, in order, and going on with each cursor finds every partition once."""
    create_topic(raw, topic_name, partitions=5)
    found: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        topics, cursor = page(partitions_of(raw, limit=3, cursor=cursor))
        found += [(name, index) for name, _, indexes in topics for index in indexes]
        if cursor is None:
            break
    assert found == sorted(set(found))
    assert [index for name, index in found if name == topic_name] == [0, 1, 2, 3, 4]


def test_a_cursor_at_a_topic_that_is_gone(raw: RawClient, topic_name: str) -> None:
    """Among all topics the cursor may name one that does not exist: the next one begins at its beginning."""
    create_topic(raw, topic_name + "-b", partitions=2)
    topics, _ = page(partitions_of(raw, cursor=(topic_name + "-a", 1), limit=2))
    assert topics == [(topic_name + "-b", "NONE", [0, 1])]


def test_refused_pages(raw: RawClient, topic_name: str) -> None:
    """A cursor must be at one of the named topics and at no negative partition; bad names have their error."""
    create_topic(raw, topic_name)
    refused: list[tuple[str, str, list[int]]] = [(topic_name, "INVALID_REQUEST", [])]
    assert page(partitions_of(raw, topic_name, cursor=(topic_name + "-x", 0))) == (refused, None)
    assert page(partitions_of(raw, topic_name, cursor=(topic_name, -1))) == (refused, None)
    assert page(partitions_of(raw, cursor=(topic_name, -1))) == ([], None)
    assert page(partitions_of(raw, "b ad")) == ([("b ad", "INVALID_TOPIC_EXCEPTION", [])], None)


def find_one(raw: RawClient, version: int, key: str, key_type: int = 0) -> tuple[str, int, str, int]:
    """Error, node id, host and port of a group's coordinator."""
    if version < 4:
        found = raw.send(FindCoordinatorRequest(key=key, key_type=key_type), version)
    else:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        (found,) = raw.send(request, version).coordinators
        assert found.key == key
    return ErrorCode(found.error_code).name, found.node_id, found.host, found.port


@pytest.mark.parametrize("version", range(7))
def test_find_the_coordinator_of_a_group(
    version: int, raw: RawClient, broker: BrokerProcess, node_id: int
) -> None:
    """It is there at the latest when the client asks again, for any group id, and its topic is internal."""
    here = ("NONE", node_id, "127.0.0.1", broker.port)
    for group_id in ("a group", "", "grüße"):
        eventually(functools.partial(find_one, raw, version, group_id), here)
    topic = describe(raw, "__consumer_offsets")
    assert topic.is_internal
    assert len(topic.partitions) == 50


@pytest.mark.parametrize("version", [4, 5, 6])
def test_find_several_coordinators(version: int, raw: RawClient, node_id: int) -> None:
    """Every key is answered, also one that comes twice, in the order asked; no key, no answer."""
    eventually(lambda: find_one(raw, version, "a")[0], "NONE")
    found = raw.send(FindCoordinatorRequest(coordinator_keys=["b", "a", "b"]), version).coordinators
    assert [(each.key, each.node_id, each.error_message) for each in found] == [
        ("b", node_id, ""),
        ("a", node_id, ""),
        ("b", node_id, ""),
    ]
    assert raw.send(FindCoordinatorRequest(coordinator_keys=[]), version).coordinators == []


@pytest.mark.parametrize("version", range(1, 7))
def test_unknown_key_types(version: int, raw: RawClient) -> None:
    """There are three types of keys, and the third, share groups, only from version 6 on."""
    for key_type in (3, 9, -1, *([2] if version < 6 else [])):
        assert find_one(raw, version, "key", key_type) == ("INVALID_REQUEST", -1, "", -1)


def test_the_offsets_topic(raw: RawClient) -> None:
    """The topic of the group coordinator is made with its configs."""
    eventually(lambda: find_one(raw, 2, "a")[0], "NONE")
    assert sorted(overrides(raw, "__consumer_offsets").items()) == [
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
        ("segment.bytes", "104857600"),
    ]


def overrides(raw: RawClient, topic: str) -> dict[str, str | None]:
    """The configs that a topic has of its own."""
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
    (result,) = raw.send(DescribeConfigsRequest(resources=[resource]), 4).results
    return {config.name: config.value for config in result.configs if config.config_source == 1}


Elected = list[tuple[str, list[tuple[int, str]]]]


def elect(
    raw: RawClient,
    version: int,
    partitions: dict[str, list[int]] | None,
    election_type: int = PREFERRED,
    **more: int,
) -> tuple[str, Elected]:
    """Top-level error, then (partition, error) of every topic."""
    named = None
    if partitions is not None:
        named = [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in partitions.items()]
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=named, **more)
    response = raw.send(request, version)
    results = [
        (
            topic.topic,
            [(each.partition_id, ErrorCode(each.error_code).name) for each in topic.partition_result],
        )
        for topic in response.replica_election_results
    ]
    return ErrorCode(response.error_code).name, results


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("election_type", [PREFERRED, UNCLEAN])
def test_elections_that_nobody_needs(
    version: int, election_type: int, raw: RawClient, topic_name: str
) -> None:
    """A partition whose leader is fine is told so when named, and left out when all are asked for."""
    if version == 0 and election_type == UNCLEAN:
        election_type = PREFERRED  # all that version 0 knows
    create_topic(raw, topic_name, partitions=2)
    named = {topic_name: [0, 1, 9], topic_name + "-x": [0]}
    assert elect(raw, version, named, election_type) == (
        "NONE",
        [
            (
                topic_name,
                [
                    (0, "ELECTION_NOT_NEEDED"),
                    (1, "ELECTION_NOT_NEEDED"),
                    (9, "UNKNOWN_TOPIC_OR_PARTITION"),
                ],
            ),
            (topic_name + "-x", [(0, "UNKNOWN_TOPIC_OR_PARTITION")]),
        ],
    )
    error, everything = elect(raw, version, None, election_type)
    assert error == "NONE"
    assert (topic_name, []) in everything
    assert all(partitions == [] for _, partitions in everything)


@pytest.mark.parametrize("version", [1, 2])
def test_refused_elections(version: int, raw: RawClient, topic_name: str) -> None:
    """An unknown type of election, and no time for one."""
    create_topic(raw, topic_name)
    named = {topic_name: [0]}
    assert elect(raw, version, named, 7) == ("INVALID_REQUEST", [(topic_name, [(0, "INVALID_REQUEST")])])
    assert elect(raw, version, None, 7) == ("INVALID_REQUEST", [])
    assert elect(raw, version, named, timeout_ms=0) == (
        "REQUEST_TIMED_OUT",
        [(topic_name, [(0, "REQUEST_TIMED_OUT")])],
    )
