"""The cluster as a client sees it through one listener: live brokers, leaders, offline replicas.

A broker is alive when it is registered and not fenced. Clients get the address that a broker advertises for the
listener on which they asked; a broker without that listener does not exist for them.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.metadata.image import MetadataImage, PartitionImage
from ottla.metadata.records import RegisterBrokerRecord
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode
from ottla.wire.uuids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid

NO_LEADER = -1
_DIRECTORIES_TAKEN_FOR_ONLINE = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker's advertised address on a listener."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class PartitionView(NamedTuple):
    """One partition for the clients of a listener. `error` is Metadata's word for a leader out of reach."""

    partition_index: int
    leader: int
    offline_replicas: list[int]
    error: ErrorCode
    image: PartitionImage


class ClusterView:
    """Answers from one image for one listener."""

    __slots__ = ("_image", "_listener", "_offline_replicas", "nodes")

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self._image = image
        self._listener = listener
        found = (_node(registration, listener) for registration in image.brokers.values())
        # Many partitions have the same replicas in the same directories: look once.
        self._offline_replicas: dict[tuple[tuple[int, ...], tuple[Uuid, ...]], list[int]] = {}
        self.nodes: dict[int, Node] = {node.id: node for node in found if node is not None}

    def alive_nodes(self) -> list[Node]:
        """Brokers that clients may connect to."""
        return [node for node in self.nodes.values() if not node.fenced]

    def alive_node(self, broker_id: int) -> Node | None:
        """The broker, if clients may connect to it."""
        node = self.nodes.get(broker_id)
        return None if node is None or node.fenced else node

    def any_broker_id(self) -> int:
        """Whom clients should take for the controller: every broker passes their requests on."""
        return next((node.id for node in self.alive_nodes()), -1)

    def partition(self, index: int, image: PartitionImage) -> PartitionView:
        """One partition, as this listener's clients may know it."""
        leader, error = NO_LEADER, ErrorCode.NONE
        if self.alive_node(image.leader) is not None:
            leader = image.leader
        elif image.leader in self._image.brokers:
            error = ErrorCode.LISTENER_NOT_FOUND
        else:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        key = (image.replicas, image.directories)
        offline = self._offline_replicas.get(key)
        if offline is None:
            offline = [replica for replica in image.replicas if self._is_offline(replica, image)]
            self._offline_replicas[key] = offline
        return PartitionView(index, leader, offline, error, image)

    def _is_offline(self, replica: int, image: PartitionImage) -> bool:
        if self.alive_node(replica) is None:
            return True
        directory = image.directory_of(replica)
        if directory is None or directory in _DIRECTORIES_TAKEN_FOR_ONLINE:
            return False
        online = self._image.brokers[replica].log_dirs
        return directory == LOST_DIRECTORY or (bool(online) and directory not in online)


def _node(registration: RegisterBrokerRecord, listener: str) -> Node | None:
    for endpoint in registration.end_points:
        if endpoint.name == listener:
            return Node(
                registration.broker_id, endpoint.host, endpoint.port, registration.rack, registration.fenced
            )
    return None
