"""Topics, configs and the cluster."""

from typing import Any

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.matrix.drivers.confluent_kafka_driver.library import Library, error_of, name_of, outcome
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, by_partition


class Admin(Library):
    """What an administrator asks."""

    def metadata(self, topics: list[str] | None) -> dict[str, Any]:
        consumer = self.consumer()  # an admin client is a producer inside, and would create topics
        try:
            wanted = [None] if topics is None else topics
            answers = [consumer.list_topics(topic, PATIENCE_SECONDS) for topic in wanted]
        finally:
            consumer.close()
        first = answers[0]
        return {
            "cluster_id": first.cluster_id,
            "controller": first.controller_id,
            "brokers": [{"id": b.id, "host": b.host, "port": b.port} for b in first.brokers.values()],
            "topics": {
                topic.topic: {
                    "error": topic.error and name_of(topic.error),
                    "partitions": [
                        {"partition": p.id, "leader": p.leader, "replicas": p.replicas, "isr": p.isrs}
                        for p in topic.partitions.values()
                    ],
                }
                for answer in answers
                for topic in answer.topics.values()
            },
        }

    def create_topics(self, topics: list[dict[str, Any]], validate_only: bool = False) -> dict[str, Any]:
        wanted = [
            NewTopic(each["name"], each["partitions"], each["replication"], config=each["configs"])
            for each in topics
        ]
        made = self.admin.create_topics(wanted, validate_only=validate_only)
        return {name: error_of(future) for name, future in made.items()}

    def delete_topics(self, topics: list[str]) -> dict[str, Any]:
        return {name: error_of(future) for name, future in self.admin.delete_topics(topics).items()}

    def create_partitions(self, topics: dict[str, int]) -> dict[str, Any]:
        wanted = [NewPartitions(name, total) for name, total in topics.items()]
        return {name: error_of(future) for name, future in self.admin.create_partitions(wanted).items()}

    def describe_configs(self, kind: str, name: str) -> dict[str, Any]:
        [future] = self.admin.describe_configs([_resource(kind, name)]).values()
        return {
            entry.name: {
                "value": entry.value,
                "default": bool(entry.is_default),
                "read_only": bool(entry.is_read_only),
                "sensitive": bool(entry.is_sensitive),
            }
            for entry in outcome(future).values()
        }

    def alter_configs(self, kind: str, name: str, set: dict[str, str], delete: list[str]) -> None:
        resource = _resource(kind, name)
        for config, value in set.items():
            operation = AlterConfigOpType.SET
            resource.add_incremental_config(ConfigEntry(config, value, incremental_operation=operation))
        for config in delete:
            operation = AlterConfigOpType.DELETE
            resource.add_incremental_config(ConfigEntry(config, "", incremental_operation=operation))
        [future] = self.admin.incremental_alter_configs([resource]).values()
        outcome(future)

    def delete_records(self, topic: str, before: dict[str, int]) -> dict[str, Any]:
        wanted = [TopicPartition(topic, int(partition), offset) for partition, offset in before.items()]
        found: dict[int, Any] = {}
        for place, future in self.admin.delete_records(wanted).items():
            error = error_of(future)
            found[place.partition] = outcome(future).low_watermark if error is None else error
        return by_partition(found)

    def list_offsets(self, topic: str, partition: int, at: str | int) -> dict[str, int]:
        named: dict[str, Any] = {
            "earliest": OffsetSpec.earliest,
            "latest": OffsetSpec.latest,
            "max_timestamp": OffsetSpec.max_timestamp,
        }
        wanted = named[at]() if isinstance(at, str) else OffsetSpec.for_timestamp(at)
        [future] = self.admin.list_offsets({TopicPartition(topic, partition): wanted}).values()
        found = outcome(future)
        return {"offset": found.offset, "timestamp": found.timestamp}

    def describe_cluster(self) -> dict[str, Any]:
        found = outcome(self.admin.describe_cluster())
        return {
            "cluster_id": found.cluster_id,
            "controller": found.controller and found.controller.id,
            "brokers": sorted(node.id for node in found.nodes),
        }

    def elect_leaders(self, kind: str, topics: dict[str, list[int]]) -> dict[str, Any]:
        wanted = [TopicPartition(topic, each) for topic, partitions in topics.items() for each in partitions]
        found: dict[str, dict[int, Any]] = {}
        for place, error in outcome(self.admin.elect_leaders(ElectionType[kind.upper()], wanted)).items():
            found.setdefault(place.topic, {})[place.partition] = error and name_of(error)
        return {topic: by_partition(partitions) for topic, partitions in found.items()}

    def describe_acls(self) -> list[Any]:
        anything: Any = None  # not what its annotations say, but what it takes
        every = AclBindingFilter(
            ResourceType.ANY,
            anything,
            ResourcePatternType.ANY,
            anything,
            anything,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return [str(each) for each in outcome(self.admin.describe_acls(every))]


def _resource(kind: str, name: str) -> ConfigResource:
    return ConfigResource(ResourceType[kind.upper()], name)
