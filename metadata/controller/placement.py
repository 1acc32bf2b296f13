"""Where the replicas of new partitions go: chosen by the broker, or as the client lists them.

With one broker there is one choice, but the errors are those of a cluster: a factor that cannot be reached,
unknown brokers, repeated ones. A log directory is chosen for each replica at once (KIP-858): the one with the
fewest partitions so far.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from ottla.metadata.features import supports_directories
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import PartitionRecord, RegisterBrokerRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import UNASSIGNED_DIRECTORY, Uuid


class Placement:
    """Places the partitions of one request on the brokers of an image."""

    def __init__(self, image: MetadataImage, node_id: int) -> None:
        self._brokers = image.brokers
        self._node_id = node_id
        self._load = _directory_load(image, node_id)
        self._knows_directories = supports_directories(image.metadata_version)

    def choose(self, partitions: int, replication_factor: int) -> list[list[int]]:
        """Replicas for each of `partitions` new partitions; InvalidReplicationFactor as KafkaError."""
        usable = [broker for broker in self._brokers.values() if _has_usable_directory(broker)]
        active = sorted(broker.broker_id for broker in usable if _is_active(broker))
        if not active:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "All brokers are currently fenced, or have all their log directories cordoned.",
            )
        if replication_factor > len(usable):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{len(usable)} broker(s) are registered or some brokers have all their log directories cordoned.",
            )
        others = sorted(broker.broker_id for broker in usable if broker.broker_id not in active)
        return [_rotated(active, partition, others)[:replication_factor] for partition in range(partitions)]

    def check_manual(self, replicas: Sequence[int], replication_factor: int | None) -> None:
        """Refuse a client's replica list as Kafka does."""
        if not replicas:
            raise _bad_assignment("The manual partition assignment includes an empty replica list.")
        previous = None
        for broker_id in sorted(replicas):
            broker = self._brokers.get(broker_id)
            if broker is None:
                raise _bad_assignment(
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
                )
            if not _has_usable_directory(broker):
                raise _bad_assignment(
                    f"The manual partition assignment includes broker {broker_id}, "
                    "but all its log directories are cordoned."
                )
            if broker_id == previous:
                raise _bad_assignment(
                    f"The manual partition assignment includes the broker {broker_id} more than once."
                )
            previous = broker_id
        if replication_factor is not None and len(replicas) != replication_factor:
            raise _bad_assignment(
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
                f"is not consistent with previous partitions, which have {replication_factor} replica(s)."
            )

    def in_sync(self, replicas: Iterable[int]) -> list[int]:
        """The replicas whose brokers are up: the first in-sync set of a new partition."""
        return [broker_id for broker_id in replicas if _is_active(self._brokers[broker_id])]

    def partition_record(self, topic_id: Uuid, partition_id: int, replicas: Sequence[int]) -> PartitionRecord:
        """The record of a new partition, its directories chosen."""
        isr = self.in_sync(replicas)
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(replicas),
            isr=isr,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[self._directory_for(broker_id) for broker_id in replicas]
            if self._knows_directories
            else [],
        )

    def _directory_for(self, broker_id: int) -> Uuid:
        broker = self._brokers[broker_id]
        cordoned = broker.cordoned_log_dirs or ()
        directories = [directory for directory in broker.log_dirs if directory not in cordoned]
        if len(directories) == 1:
            return directories[0]
        if not directories or broker_id != self._node_id:
            return UNASSIGNED_DIRECTORY
        chosen = min(directories, key=lambda directory: self._load[directory])
        self._load[chosen] += 1
        return chosen


def _is_active(broker: RegisterBrokerRecord) -> bool:
    return not broker.fenced and not broker.in_controlled_shutdown


def _has_usable_directory(broker: RegisterBrokerRecord) -> bool:
    cordoned = broker.cordoned_log_dirs or ()
    return not broker.log_dirs or any(directory not in cordoned for directory in broker.log_dirs)


def _rotated(active: list[int], partition: int, others: list[int]) -> list[int]:
    start = partition % len(active)
    return [*active[start:], *active[:start], *others]


def _directory_load(image: MetadataImage, node_id: int) -> Counter[Uuid]:
    broker = image.brokers.get(node_id)
    if broker is None or len(broker.log_dirs) < 2:
        return Counter()
    return Counter(
        partition.directory_of(node_id) or UNASSIGNED_DIRECTORY
        for topic in image.topics_by_name.values()
        for partition in topic.partitions.values()
    )


def _bad_assignment(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
