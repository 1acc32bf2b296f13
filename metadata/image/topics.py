"""Topics and partitions of the metadata image.

A partition's image is a value: a change makes a new one, so whoever holds one can go on reading it. There may be very
many, which differ in little: it is a tuple, and the lists in it are shared.
"""

from functools import lru_cache
from typing import NamedTuple, TypeVar

from ottla.metadata.errors import MetadataError
from ottla.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord
from ottla.wire.dataclass import dataclass, field
from ottla.wire.uuids import MIGRATING_DIRECTORY, Uuid, format_uuid

T = TypeVar("T")


class PartitionImage(NamedTuple):
    """One partition as the metadata log tells it."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def of(cls, record: PartitionRecord) -> "PartitionImage":
        """The partition as its first record tells it."""
        replicas = _shared(tuple(record.replicas))
        return cls(
            replicas,
            _directories(record.directories, len(replicas)),
            _shared(tuple(record.isr)),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            record.leader_recovery_state,
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    def merge(self, change: PartitionChangeRecord) -> "PartitionImage":
        """The partition after `change`.

        Any change moves the partition epoch; naming a leader, even the same, moves the leader epoch.
        """
        replicas = _merged(self.replicas, change.replicas)
        directories = self.directories if change.directories is None else change.directories
        led = change.leader != NO_LEADER_CHANGE
        recovery = change.leader_recovery_state
        return PartitionImage(
            replicas=replicas,
            directories=_directories(directories, len(replicas)),
            isr=_merged(self.isr, change.isr),
            leader=change.leader if led else self.leader,
            leader_epoch=self.leader_epoch + led,
            partition_epoch=self.partition_epoch + 1,
            removing_replicas=_merged(self.removing_replicas, change.removing_replicas),
            adding_replicas=_merged(self.adding_replicas, change.adding_replicas),
            leader_recovery_state=self.leader_recovery_state if recovery == -1 else recovery,
            eligible_leader_replicas=_merged(self.eligible_leader_replicas, change.eligible_leader_replicas),
            last_known_elr=_merged(self.last_known_elr, change.last_known_elr),
        )

    def without_elr(self) -> "PartitionImage":
        """The partition after its eligible leaders were cleared."""
        return self._replace(
            eligible_leader_replicas=(), last_known_elr=(), partition_epoch=self.partition_epoch + 1
        )

    def to_record(self, topic_id: Uuid, partition_id: int, *, with_directories: bool) -> PartitionRecord:
        """The one record that tells this partition whole, as a snapshot does.

        Older metadata versions know no directories.
        """
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories) if with_directories else [],
            eligible_leader_replicas=list(self.eligible_leader_replicas) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    def directory_of(self, node_id: int) -> Uuid | None:
        """The log directory of the replica on `node_id`, None if there is no such replica."""
        for replica, directory in zip(self.replicas, self.directories, strict=True):
            if replica == node_id:
                return directory
        return None


class NewPartition(NamedTuple):
    """A record of a partition with what it comes to, which is most of the work of folding it in."""

    topic_id: Uuid
    partition_id: int
    image: PartitionImage

    @classmethod
    def of(cls, record: PartitionRecord) -> "NewPartition":
        """The partition as its first record tells it."""
        return cls(record.topic_id, record.partition_id, PartitionImage.of(record))


@dataclass(slots=True, eq=False)
class TopicImage:
    """A topic; the same object for as long as the topic lives."""

    name: str
    topic_id: Uuid
    partitions: dict[int, PartitionImage] = field(default_factory=dict)

    def partition(self, partition_id: int) -> PartitionImage:
        """The partition a record speaks of; MetadataError when the log contradicts itself."""
        try:
            return self.partitions[partition_id]
        except KeyError:
            raise MetadataError(
                f"The metadata log changes partition {partition_id} of topic {self.name}"
                f" ({format_uuid(self.topic_id)}), but never made it."
            ) from None


def _merged(before: tuple[int, ...], change: list[int] | None) -> tuple[int, ...]:
    return before if change is None else _shared(tuple(change))


def _directories(directories: "list[Uuid] | tuple[Uuid, ...]", replicas: int) -> tuple[Uuid, ...]:
    if not directories:
        return (MIGRATING_DIRECTORY,) * replicas
    if len(directories) != replicas:
        raise MetadataError(
            f"The metadata log tells {len(directories)} directories for a partition of {replicas} replicas."
        )
    return _shared(tuple(directories))


@lru_cache(maxsize=4096)
def _shared(values: tuple[T, ...]) -> tuple[T, ...]:
    """The first one that was like it."""
    return values
