"""The metadata image: all of the cluster's metadata in memory, folded from the records of the metadata log.

`apply` is the only way in. It serves the replay at start-up, the snapshots and every live change alike, so
what a broker knows while it runs is what it will know after a restart. Records between a begin and an end
record are held back until the end is read (KIP-868).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from ottla.metadata.errors import MetadataError
from ottla.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION
from ottla.metadata.image.delta import MetadataDelta, PartitionChange
from ottla.metadata.image.topics import NewPartition, PartitionImage, TopicImage
from ottla.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from ottla.metadata.topic_names import has_collision_characters, unify_collision_characters
from ottla.wire.uuids import Uuid, format_uuid

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

# What is about to be folded in: a record, or what was made of it before.
Foldable = MetadataRecord | NewPartition
QuotaEntity = tuple[tuple[str, str | None], ...]


class MetadataImage:
    """What the metadata log says, up to `last_offset`."""

    __slots__ = (
        "_sorted_names",
        "_transaction",
        "acls",
        "brokers",
        "client_quotas",
        "colliding_names",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "last_offset",
        "next_producer_id",
        "scram_credentials",
        "topics_by_id",
        "topics_by_name",
        "zk_migration_state",
    )

    def __init__(self) -> None:
        self.topics_by_name: dict[str, TopicImage] = {}
        self.topics_by_id: dict[Uuid, TopicImage] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.next_producer_id = -1
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[Uuid, AccessControlEntryRecord] = {}
        self.scram_credentials: dict[tuple[int, str], UserScramCredentialRecord] = {}
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        self.zk_migration_state = 0
        self.last_offset = -1
        self.colliding_names: dict[str, set[str]] = {}
        self._sorted_names: list[str] = []
        self._transaction: list[Foldable] | None = None

    # Questions ---------------------------------------------------------------------------------------------

    @property
    def metadata_version(self) -> int:
        """The metadata.version in force; 0 before the log told one."""
        return self.features.get(METADATA_VERSION, 0)

    @property
    def elr_enabled(self) -> bool:
        """Are eligible leader replicas (KIP-966) switched on in this directory?"""
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    @property
    def in_transaction(self) -> bool:
        """Does the log end inside a transaction that nobody finished?"""
        return self._transaction is not None

    def topic_names(self) -> list[str]:
        """All topic names in order. The list is the image's own: read it, do not change it."""
        return self._sorted_names

    def topic_configs(self, name: str) -> dict[str, str]:
        """The configs set on a topic."""
        return self.configs.get((TOPIC_RESOURCE, name), {})

    def broker_configs(self, node_id: int | None) -> dict[str, str]:
        """The dynamic configs of a broker, or the cluster-wide defaults for None."""
        return self.configs.get((BROKER_RESOURCE, "" if node_id is None else str(node_id)), {})

    def partition(self, topic: str, partition_id: int) -> PartitionImage | None:
        """The partition of a topic's name, None if either does not exist."""
        image = self.topics_by_name.get(topic)
        return None if image is None else image.partitions.get(partition_id)

    # The fold ----------------------------------------------------------------------------------------------

    def apply(self, record: Foldable, delta: MetadataDelta | None = None) -> MetadataDelta:
        """Fold one record in and note in `delta` what it changed."""
        if delta is None:
            delta = MetadataDelta()
        kind = type(record)
        if kind in _TRANSACTION_BRACKETS:
            self._bracket(record, delta)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            _FOLDS[kind](self, record, delta)
        return delta

    def apply_all(self, records: Iterable[Foldable], last_offset: int) -> MetadataDelta:
        """Fold the records of one batch, the last of which stands at `last_offset`."""
        delta = MetadataDelta()
        for record in records:
            self.apply(record, delta)
        self.last_offset = last_offset
        return delta

    def _bracket(self, record: Foldable, delta: MetadataDelta) -> None:
        if isinstance(record, BeginTransactionRecord):
            if self._transaction is not None:
                raise MetadataError("The metadata log begins a transaction inside another one.")
            self._transaction = []
            return
        if self._transaction is None:
            raise MetadataError("The metadata log finishes a transaction that it never began.")
        held, self._transaction = self._transaction, None
        if isinstance(record, EndTransactionRecord):
            for member in held:
                _FOLDS[type(member)](self, member, delta)

    def _topic(self, topic_id: Uuid) -> TopicImage:
        try:
            return self.topics_by_id[topic_id]
        except KeyError:
            raise MetadataError(
                f"The metadata log speaks of topic id {format_uuid(topic_id)}, but has no such topic."
            ) from None

    def _fold_topic(self, record: TopicRecord, delta: MetadataDelta) -> None:
        if record.name in self.topics_by_name:
            raise MetadataError(f"The metadata log makes topic {record.name} twice.")
        topic = TopicImage(record.name, record.topic_id)
        self.topics_by_name[record.name] = topic
        self.topics_by_id[record.topic_id] = topic
        insort(self._sorted_names, record.name)
        if has_collision_characters(record.name):
            unified = unify_collision_characters(record.name)
            self.colliding_names.setdefault(unified, set()).add(record.name)
        delta.created_topics.append(topic)

    def _fold_partition(self, record: PartitionRecord, delta: MetadataDelta) -> None:
        self._fold_new_partition(NewPartition.of(record), delta)

    def _fold_new_partition(self, new: NewPartition, delta: MetadataDelta) -> None:
        topic_id, partition_id, after = new
        topic = self._topic(topic_id)
        before = topic.partitions.get(partition_id)
        topic.partitions[partition_id] = after
        if before is None:
            delta.new_partitions.append((topic, partition_id))
        else:
            delta.changed_partitions.append(PartitionChange(topic, partition_id, before, after))

    def _fold_partition_change(self, record: PartitionChangeRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record.topic_id)
        before = topic.partition(record.partition_id)
        after = topic.partitions[record.partition_id] = before.merge(record)
        delta.changed_partitions.append(PartitionChange(topic, record.partition_id, before, after))

    def _fold_remove_topic(self, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record.topic_id)
        del self.topics_by_id[topic.topic_id]
        del self.topics_by_name[topic.name]
        del self._sorted_names[bisect_left(self._sorted_names, topic.name)]
        if has_collision_characters(topic.name):
            unified = unify_collision_characters(topic.name)
            self.colliding_names[unified].discard(topic.name)
            if not self.colliding_names[unified]:
                del self.colliding_names[unified]
        self.configs.pop((TOPIC_RESOURCE, topic.name), None)
        delta.changed_configs.pop((TOPIC_RESOURCE, topic.name), None)
        delta.topic_deleted(topic)

    def _fold_clear_elr(self, record: ClearElrRecord, delta: MetadataDelta) -> None:
        if record.topic_name:
            topic = self.topics_by_name.get(record.topic_name)
            if topic is None:
                raise MetadataError(
                    f"The metadata log clears topic {record.topic_name}, which it never made."
                )
            topics = [topic]
        else:
            topics = list(self.topics_by_name.values())
        for topic in topics:
            for partition_id, before in topic.partitions.items():
                if before.eligible_leader_replicas or before.last_known_elr:
                    topic.partitions[partition_id] = before.without_elr()

    def _fold_config(self, record: ConfigRecord, delta: MetadataDelta) -> None:
        resource = (record.resource_type, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
        elif resource in self.configs:
            self.configs[resource].pop(record.name, None)
            if not self.configs[resource]:
                del self.configs[resource]
        delta.changed_configs[resource] = None

    def _fold_feature(self, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        delta.features_changed = True

    def _fold_register_broker(self, record: RegisterBrokerRecord, delta: MetadataDelta) -> None:
        self.brokers[record.broker_id] = record
        delta.nodes_changed = True

    def _registered(self, broker_id: int, broker_epoch: int) -> RegisterBrokerRecord:
        registration = self.brokers.get(broker_id)
        if registration is None or registration.broker_epoch != broker_epoch:
            raise MetadataError(
                f"The metadata log speaks of broker {broker_id} with epoch {broker_epoch},"
                " which is not registered."
            )
        return registration

    def _fold_unregister_broker(self, record: UnregisterBrokerRecord, delta: MetadataDelta) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        del self.brokers[record.broker_id]
        delta.nodes_changed = True

    def _set_fenced(self, broker_id: int, broker_epoch: int, fenced: bool) -> None:
        registration = copy(self._registered(broker_id, broker_epoch))
        registration.fenced = fenced
        self.brokers[broker_id] = registration

    def _fold_fence(self, record: FenceBrokerRecord, delta: MetadataDelta) -> None:
        self._set_fenced(record.id, record.epoch, True)
        delta.nodes_changed = True

    def _fold_unfence(self, record: UnfenceBrokerRecord, delta: MetadataDelta) -> None:
        self._set_fenced(record.id, record.epoch, False)
        delta.nodes_changed = True

    def _fold_broker_change(self, record: BrokerRegistrationChangeRecord, delta: MetadataDelta) -> None:
        registration = copy(self._registered(record.broker_id, record.broker_epoch))
        if record.fenced:
            registration.fenced = record.fenced > 0
        if record.in_controlled_shutdown:
            registration.in_controlled_shutdown = True
        if record.log_dirs:
            registration.log_dirs = record.log_dirs
        if record.cordoned_log_dirs is not None:
            registration.cordoned_log_dirs = record.cordoned_log_dirs
        self.brokers[record.broker_id] = registration
        delta.nodes_changed = True

    def _fold_controller(self, record: RegisterControllerRecord, delta: MetadataDelta) -> None:
        self.controllers[record.controller_id] = record
        delta.nodes_changed = True

    def _fold_producer_ids(self, record: ProducerIdsRecord, delta: MetadataDelta) -> None:
        self.next_producer_id = record.next_producer_id

    def _fold_client_quota(self, record: ClientQuotaRecord, delta: MetadataDelta) -> None:
        parts = ((part.entity_type, part.entity_name) for part in record.entity)
        entity = tuple(sorted(parts, key=_entity_key))
        if not record.remove:
            self.client_quotas.setdefault(entity, {})[record.key] = record.value
        elif entity in self.client_quotas:
            self.client_quotas[entity].pop(record.key, None)
            if not self.client_quotas[entity]:
                del self.client_quotas[entity]
        delta.quotas_changed = True

    def _fold_acl(self, record: AccessControlEntryRecord, delta: MetadataDelta) -> None:
        self.acls[record.id] = record
        delta.security_changed = True

    def _fold_remove_acl(self, record: RemoveAccessControlEntryRecord, delta: MetadataDelta) -> None:
        self.acls.pop(record.id, None)
        delta.security_changed = True

    def _fold_scram(self, record: UserScramCredentialRecord, delta: MetadataDelta) -> None:
        self.scram_credentials[(record.mechanism, record.name)] = record
        delta.security_changed = True

    def _fold_remove_scram(self, record: RemoveUserScramCredentialRecord, delta: MetadataDelta) -> None:
        self.scram_credentials.pop((record.mechanism, record.name), None)
        delta.security_changed = True

    def _fold_token(self, record: DelegationTokenRecord, delta: MetadataDelta) -> None:
        self.delegation_tokens[record.token_id] = record
        delta.security_changed = True

    def _fold_remove_token(self, record: RemoveDelegationTokenRecord, delta: MetadataDelta) -> None:
        self.delegation_tokens.pop(record.token_id, None)
        delta.security_changed = True

    def _fold_zk_migration(self, record: ZkMigrationStateRecord, delta: MetadataDelta) -> None:
        self.zk_migration_state = record.zk_migration_state

    def _fold_nothing(self, record: NoOpRecord, delta: MetadataDelta) -> None:
        """A no-op moves the offset and nothing else."""


def _entity_key(part: tuple[str, str | None]) -> tuple[str, str]:
    return part[0], part[1] or ""


def prepared(records: Iterable[MetadataRecord]) -> list[Foldable]:
    """The records with the work done that needs no image, as long as nobody waits: a topic may have very many
    partitions, and folding them in must not be interrupted."""
    return [NewPartition.of(each) if isinstance(each, PartitionRecord) else each for each in records]


_TRANSACTION_BRACKETS = {BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord}

_FOLDS: dict[type[Any], Callable[[MetadataImage, Any, MetadataDelta], None]] = {
    TopicRecord: MetadataImage._fold_topic,
    PartitionRecord: MetadataImage._fold_partition,
    NewPartition: MetadataImage._fold_new_partition,
    PartitionChangeRecord: MetadataImage._fold_partition_change,
    RemoveTopicRecord: MetadataImage._fold_remove_topic,
    ClearElrRecord: MetadataImage._fold_clear_elr,
    ConfigRecord: MetadataImage._fold_config,
    FeatureLevelRecord: MetadataImage._fold_feature,
    RegisterBrokerRecord: MetadataImage._fold_register_broker,
    UnregisterBrokerRecord: MetadataImage._fold_unregister_broker,
    FenceBrokerRecord: MetadataImage._fold_fence,
    UnfenceBrokerRecord: MetadataImage._fold_unfence,
    BrokerRegistrationChangeRecord: MetadataImage._fold_broker_change,
    RegisterControllerRecord: MetadataImage._fold_controller,
    ProducerIdsRecord: MetadataImage._fold_producer_ids,
    ClientQuotaRecord: MetadataImage._fold_client_quota,
    AccessControlEntryRecord: MetadataImage._fold_acl,
    RemoveAccessControlEntryRecord: MetadataImage._fold_remove_acl,
    UserScramCredentialRecord: MetadataImage._fold_scram,
    RemoveUserScramCredentialRecord: MetadataImage._fold_remove_scram,
    DelegationTokenRecord: MetadataImage._fold_token,
    RemoveDelegationTokenRecord: MetadataImage._fold_remove_token,
    ZkMigrationStateRecord: MetadataImage._fold_zk_migration,
    NoOpRecord: MetadataImage._fold_nothing,
}
