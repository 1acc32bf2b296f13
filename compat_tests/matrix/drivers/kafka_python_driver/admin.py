"""Topics, configs, transactions and the cluster."""

from typing import Any

from kafka import OffsetSpec, TopicPartition
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError
from kafka.protocol.consumer import OffsetTimestamp

from compat_tests.matrix.drivers.answers import by_topic
from compat_tests.matrix.drivers.kafka_python_driver.library import (
    Library,
    name_of,
    name_or_none,
)
from compat_tests.matrix.drivers.serving import Refused, by_partition

SPECS = {
    "earliest": OffsetSpec.EARLIEST,
    "latest": OffsetSpec.LATEST,
    "max_timestamp": OffsetSpec.MAX_TIMESTAMP,
}
ELECTIONS = {"preferred": 0, "unclean": 1}


class Admin(Library):
    """What an administrator asks."""

    def metadata(self, topics: list[str] | None) -> dict[str, Any]:
        cluster = self.admin.describe_cluster()
        return {
            "cluster_id": cluster["cluster_id"],
            "controller": cluster["controller_id"],
            "brokers": [
                {"id": each["broker_id"], "host": each["host"], "port": each["port"]}
                for each in cluster["brokers"]
            ],
            "topics": {
                topic["name"]: {
                    "error": name_or_none(topic["error_code"]),
                    "partitions": [
                        {
                            "partition": each["partition_index"],
                            "leader": each["leader_id"],
                            "replicas": each["replica_nodes"],
                            "isr": each["isr_nodes"],
                        }
                        for each in topic["partitions"]
                    ],
                }
                for topic in self.admin.describe_topics(topics)
            },
        }

    def create_topics(self, topics: list[dict[str, Any]], validate_only: bool = False) -> dict[str, Any]:
        wanted = {
            each["name"]: {
                "num_partitions": each["partitions"],
                "replication_factor": each["replication"],
                "configs": each["configs"],
            }
            for each in topics
        }
        made = self.admin.create_topics(wanted, validate_only=validate_only, raise_errors=False)
        return {each["name"]: name_or_none(each["error_code"]) for each in made["topics"]}

    def delete_topics(self, topics: list[str]) -> dict[str, Any]:
        done = self.admin.delete_topics(topics, raise_errors=False)
        return {each["name"]: name_or_none(each["error_code"]) for each in done["topics"]}

    def create_partitions(self, topics: dict[str, int]) -> dict[str, Any]:
        done = self.admin.create_partitions(topics, raise_errors=False)
        return {each.name: name_or_none(each.error_code) for each in done.results}

    def describe_configs(self, kind: str, name: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        found = self.admin.describe_configs([resource], config_filter="all")[kind][name]
        return {
            config: {
                "value": each["value"],
                "default": each["config_source"] == "DEFAULT_CONFIG",
                "read_only": each["read_only"],
                "sensitive": each["is_sensitive"],
            }
            for config, each in found.items()
        }

    def alter_configs(self, kind: str, name: str, set: dict[str, str], delete: list[str]) -> None:
        changes = {config: ("SET", value) for config, value in set.items()}
        changes |= dict.fromkeys(delete, ("DELETE", ""))
        resource = ConfigResource(ConfigResourceType[kind.upper()], name, changes)
        done = self.admin.alter_configs([resource], raise_on_unknown=False)[kind][name]
        if done != "OK":
            raise Refused(name_or_none(done) or "LOCAL", done)

    def delete_records(self, topic: str, before: dict[str, int]) -> dict[str, Any]:
        wanted = {TopicPartition(topic, int(partition)): offset for partition, offset in before.items()}
        found = self.admin.delete_records(wanted)
        return by_partition({place.partition: each["low_watermark"] for place, each in found.items()})

    def list_offsets(self, topic: str, partition: int, at: str | int) -> dict[str, int]:
        wanted = SPECS[at] if isinstance(at, str) else OffsetTimestamp(at)
        place = TopicPartition(topic, partition)
        found = self.admin.list_partition_offsets({place: wanted})[place]
        return {"offset": found.offset, "timestamp": found.timestamp}

    def describe_cluster(self) -> dict[str, Any]:
        found = self.admin.describe_cluster()
        return {
            "cluster_id": found["cluster_id"],
            "controller": found["controller_id"],
            "brokers": sorted(each["broker_id"] for each in found["brokers"]),
        }

    def describe_features(self) -> dict[str, Any]:
        found = self.admin.describe_features()
        return {name: list(each["finalized"]) for name, each in found.items() if "finalized" in each}

    def describe_log_dirs(self, topics: list[str]) -> dict[str, Any]:
        sizes: dict[str, dict[int, Any]] = {}
        for broker in self.admin.describe_log_dirs(topics):
            for directory in broker["log_dirs"]:
                for topic in directory["topics"]:
                    for each in topic["partitions"]:
                        sizes.setdefault(topic["name"], {})[each["partition_index"]] = {
                            "size": each["partition_size"],
                            "lag": each["offset_lag"],
                            "future": each["is_future_key"],
                        }
        return {topic: by_partition(partitions) for topic, partitions in sizes.items()}

    def describe_producers(self, topic: str, partition: int) -> list[dict[str, Any]]:
        place = TopicPartition(topic, partition)
        return [
            {
                "producer_id": each.producer_id,
                "epoch": each.producer_epoch,
                "last_sequence": each.last_sequence,
                "in_transaction": each.current_transaction_start_offset >= 0,
            }
            for each in self.admin.describe_producers([place])[place].active_producers
        ]

    def list_transactions(self) -> dict[str, str]:
        return {
            each.transactional_id: each.state.value
            for listed in self.admin.list_transactions().values()
            for each in listed
        }

    def describe_transactions(self, ids: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in ids:
            try:
                told = self.admin.describe_transactions([each])[each]
            except KafkaError as error:
                found[each] = name_of(error)
            else:
                found[each] = {"state": told.state.value, "topics": by_topic(told.topic_partitions)}
        return found

    def elect_leaders(self, kind: str, topics: dict[str, list[int]]) -> dict[str, Any]:
        done = self.admin.elect_leaders(ELECTIONS[kind], topics, raise_errors=False)
        if done.error_code:
            raise Refused(name_or_none(done.error_code) or "LOCAL")
        return {
            each.topic: by_partition(
                {one.partition_id: name_or_none(one.error_code) for one in each.partition_result}
            )
            for each in done.replica_election_results
        }

    def describe_acls(self) -> list[Any]:
        every = ACLFilter(
            principal=None,
            host=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
        )
        found, _error = self.admin.describe_acls(every)
        return [str(each) for each in found]
