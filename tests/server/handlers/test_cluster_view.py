"""The cluster through one listener, from images that a broker alone never has: others, fenced, out of reach."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.metadata.image import MetadataImage
from ottla.metadata.records import PartitionRecord, RegisterBrokerRecord, TopicRecord
from ottla.metadata.records.nodes import BrokerEndpoint
from ottla.server.cluster_view import ClusterView
from ottla.server.context import RequestContext
from ottla.server.handlers.describe_cluster import handle_describe_cluster
from ottla.server.handlers.metadata import handle_metadata
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponsePartition
from ottla.wire.uuids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY

TOPIC_ID = b"t" * 16
GOOD_DIRECTORY, GONE_DIRECTORY = b"d" * 16, b"g" * 16
FENCED, ALONE_ON_TWO = 2, 3


def registration(broker_id: int, *listeners: str, fenced: bool = False) -> RegisterBrokerRecord:
    """A broker with these listeners and one good log directory."""
    endpoints = [
        BrokerEndpoint(name=name, host=f"b{broker_id}.{name.lower()}", port=1000 + broker_id)
        for name in listeners
    ]
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=broker_id,
        fenced=fenced,
        end_points=endpoints,
        log_dirs=[GOOD_DIRECTORY],
    )


def image(*partitions: PartitionRecord) -> MetadataImage:
    """Three brokers, the second fenced, the third without the listener ONE; one topic."""
    found = MetadataImage()
    nodes = [
        registration(1, "ONE", "TWO"),
        registration(FENCED, "ONE", "TWO", fenced=True),
        registration(ALONE_ON_TWO, "TWO"),
    ]
    found.apply_all([*nodes, TopicRecord(name="t", topic_id=TOPIC_ID), *partitions], last_offset=9)
    return found


def partition(leader: int, *replicas: int, directories: list[bytes] | None = None) -> PartitionRecord:
    """Partition 0 with its replicas, all in sync."""
    return PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=list(replicas),
        isr=list(replicas),
        leader=leader,
        leader_epoch=5,
        directories=directories or [GOOD_DIRECTORY] * len(replicas),
    )


def context(of: MetadataImage, version: int, listener: str = "ONE") -> RequestContext:
    """A request that came in on a listener."""
    broker = SimpleNamespace(image=of, cluster_id="c", settling=False)
    found = RequestContext(cast(Any, broker), listener, "127.0.0.1")
    found.api_version = version
    return found


def metadata_of(record: PartitionRecord, version: int = 12) -> MetadataResponsePartition:
    """The only partition, as Metadata tells it on the listener ONE."""
    response = handle_metadata(
        context(image(record), version), MetadataRequest(topics=None if version else [])
    )
    assert isinstance(response, MetadataResponse)
    return response.topics[0].partitions[0]


def test_brokers_of_a_listener() -> None:
    """Fenced brokers and those without the listener are not told."""
    one, two = ClusterView(image(), "ONE"), ClusterView(image(), "TWO")
    assert [(node.id, node.host) for node in one.alive_nodes()] == [(1, "b1.one")]
    assert [(node.id, node.host) for node in two.alive_nodes()] == [(1, "b1.two"), (ALONE_ON_TWO, "b3.two")]
    assert ClusterView(image(), "THREE").any_broker_id() == -1


def test_describe_cluster_tells_fenced_brokers_when_asked() -> None:
    """With include_fenced_brokers they come, marked."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    brokers = handle_describe_cluster(context(image(), 2), request).brokers
    assert [(broker.broker_id, broker.is_fenced) for broker in brokers] == [(1, False), (FENCED, True)]
    brokers = handle_describe_cluster(context(image(), 2), DescribeClusterRequest()).brokers
    assert [broker.broker_id for broker in brokers] == [1]


@pytest.mark.parametrize(
    ("leader", "version", "error"),
    [
        (-1, 12, ErrorCode.LEADER_NOT_AVAILABLE),
        (9, 12, ErrorCode.LEADER_NOT_AVAILABLE),
        (FENCED, 12, ErrorCode.LISTENER_NOT_FOUND),
        (ALONE_ON_TWO, 6, ErrorCode.LISTENER_NOT_FOUND),
        (ALONE_ON_TWO, 5, ErrorCode.LEADER_NOT_AVAILABLE),
        (1, 12, ErrorCode.NONE),
    ],
)
def test_leaders_out_of_reach(leader: int, version: int, error: ErrorCode) -> None:
    """The partition is told without a leader and with the error that the version knows."""
    found = metadata_of(partition(leader, 1, FENCED, ALONE_ON_TWO), version)
    assert (found.error_code, found.leader_id) == (error, leader if error == ErrorCode.NONE else -1)
    assert found.replica_nodes == [1, FENCED, ALONE_ON_TWO]
    assert found.offline_replicas == [FENCED, ALONE_ON_TWO]
    assert found.leader_epoch == 5


def test_version_0_leaves_dead_replicas_out() -> None:
    """It has no list of offline replicas, and says that some are not available."""
    found = metadata_of(partition(1, 1, FENCED), version=0)
    assert (found.error_code, found.leader_id) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1)
    assert (found.replica_nodes, found.isr_nodes) == ([1], [1])


@pytest.mark.parametrize(
    ("directory", "offline"),
    [
        (GOOD_DIRECTORY, False),
        (MIGRATING_DIRECTORY, False),
        (UNASSIGNED_DIRECTORY, False),
        (GONE_DIRECTORY, True),
        (LOST_DIRECTORY, True),
    ],
)
def test_replicas_in_directories_that_are_gone(directory: bytes, offline: bool) -> None:
    """A replica is offline when its directory is (KIP-858)."""
    found = metadata_of(partition(1, 1, directories=[directory]))
    assert found.offline_replicas == ([1] if offline else [])
