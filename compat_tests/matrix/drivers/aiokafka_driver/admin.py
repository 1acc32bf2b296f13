"""Topics, configs, and what an administrator asks of groups. aiokafka has no incremental change of configs."""

from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import KafkaError, NotLeaderForPartitionError

from compat_tests.matrix.drivers.aiokafka_driver.library import Library, code_name
from compat_tests.matrix.drivers.answers import by_topic
from compat_tests.matrix.drivers.serving import Refused, Unsupported, by_partition

DEFAULT_SOURCE = 5


class Admin(Library):
    """What its admin client can do."""

    async def metadata(self, topics: list[str] | None) -> dict[str, Any]:
        """Of all topics, whichever are asked for: it lets the broker create those that it names."""
        admin = await self.admin()
        cluster = await admin.describe_cluster()
        found = {each["topic"]: each for each in await admin.describe_topics()}
        return {
            "cluster_id": cluster.get("cluster_id"),
            "controller": cluster["controller_id"],
            "brokers": [
                {"id": each["node_id"], "host": each["host"], "port": each["port"]}
                for each in cluster["brokers"]
            ],
            "topics": {
                name: {
                    "error": code_name(each["error_code"]),
                    "partitions": [
                        {field: part[field] for field in ("partition", "leader", "replicas", "isr")}
                        for part in each["partitions"]
                    ],
                }
                for name, each in found.items()
                if topics is None or name in topics
            },
        }

    async def describe_cluster(self) -> dict[str, Any]:
        cluster = await (await self.admin()).describe_cluster()
        return {
            "cluster_id": cluster["cluster_id"],
            "controller": cluster["controller_id"],
            "brokers": [each["node_id"] for each in cluster["brokers"]],
        }

    async def create_topics(
        self, topics: list[dict[str, Any]], validate_only: bool = False
    ) -> dict[str, str | None]:
        wanted = [
            NewTopic(each["name"], each["partitions"], each["replication"], topic_configs=each["configs"])
            for each in topics
        ]
        answer = await (await self.admin()).create_topics(wanted, validate_only=validate_only)
        return {topic: code_name(code) for topic, code, *_ in answer.topic_errors}

    async def delete_topics(self, topics: list[str]) -> dict[str, str | None]:
        answer = await (await self.admin()).delete_topics(topics)
        return {topic: code_name(code) for topic, code, *_ in answer.topic_error_codes}

    async def create_partitions(self, topics: dict[str, int]) -> dict[str, str | None]:
        admin = await self.admin()
        found: dict[str, str | None] = {}
        for topic, total in topics.items():  # one by one: it raises for the first that fails
            try:
                await admin.create_partitions({topic: NewPartitions(total)})
                found[topic] = None
            except KafkaError as error:
                found[topic] = self.name_of(error)
        return found

    async def describe_configs(self, kind: str, name: str) -> dict[str, Any]:
        asked = ConfigResource(ConfigResourceType[kind.upper()], name)
        [answer] = await (await self.admin()).describe_configs([asked])
        [(code, message, _kind, _name, entries)] = answer.resources
        if code:
            raise Refused(str(code_name(code)), message or "")
        return {
            config: {
                "value": value,
                "default": source == DEFAULT_SOURCE,
                "read_only": read_only,
                "sensitive": sensitive,
            }
            for config, value, read_only, source, sensitive, *_ in entries
        }

    def alter_configs(self, **_: Any) -> None:
        raise Unsupported("aiokafka replaces all configs at once, and cannot change single ones")

    async def delete_records(self, topic: str, before: dict[str, int]) -> dict[str, Any]:
        wanted = {
            TopicPartition(topic, int(partition)): RecordsToDelete(offset)
            for partition, offset in before.items()
        }
        try:
            answer = await (await self.admin()).delete_records(wanted)
        except NotLeaderForPartitionError:  # its own word for a partition that it has not heard of
            raise LookupError("aiokafka knows no leader of the partition") from None
        return by_partition({place.partition: low for place, low in answer.items()})

    async def list_groups(self) -> dict[str, Any]:
        found = await (await self.admin()).list_consumer_groups()
        return {group: {"state": None, "type": None} for group, *_ in found}

    async def describe_group(self, group: str) -> dict[str, Any]:
        [answer] = await (await self.admin()).describe_consumer_groups([group])
        [(code, _group, state, _kind, protocol, members, *_)] = answer.groups
        if code:
            raise Refused(str(code_name(code)))
        return {
            "state": state,
            "type": None,
            "protocol": protocol,
            "members": [
                {"client_id": client_id, "instance_id": None, "assignment": _assignment(assignment)}
                for _member_id, client_id, _host, _metadata, assignment, *_ in members
            ],
        }

    async def committed(self, group: str, topic: str, partitions: list[int]) -> dict[str, int]:
        asked = [TopicPartition(topic, partition) for partition in partitions]
        found = await (await self.admin()).list_consumer_group_offsets(group, partitions=asked)
        return by_partition({place.partition: each.offset for place, each in found.items()})


def _assignment(encoded: bytes) -> dict[str, list[int]]:
    return by_topic(ConsumerProtocolMemberAssignment.decode(encoded).partitions()) if encoded else {}
