"""Members of groups, share groups, and what an administrator asks of groups."""

from typing import Any

from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    ShareConsumer,
    TopicPartition,
)

from compat_tests.matrix.drivers.answers import Offsets, by_topic
from compat_tests.matrix.drivers.confluent_kafka_driver.library import (
    Library,
    error_of,
    outcome,
    places,
)
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, Refused, Unsupported, by_partition, encoded

ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
STATES = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "EMPTY": "Empty",
    "DEAD": "Dead",
    "UNKNOWN": "Unknown",
}


class Groups(Library):
    """Members by the name that a case gives them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.members: dict[str, Consumer] = {}
        self._positions: dict[str, dict[tuple[str, int], int]] = {}
        self._share_members: dict[str, ShareConsumer] = {}

    def join(
        self,
        group: str,
        topics: list[str] | None = None,
        pattern: str | None = None,
        assignor: str | None = None,
        protocol: str = "classic",
        remote_assignor: str | None = None,
        instance_id: str | None = None,
        isolation: str | None = None,
        session_ms: int | None = None,
        **named: Any,
    ) -> None:
        if assignor is not None and assignor not in ASSIGNORS:
            raise Unsupported(f"librdkafka has no assignor {assignor}")
        settings: dict[str, str | int | None] = {
            "partition_assignment_strategy": assignor,
            "group_protocol": protocol,
            "group_remote_assignor": remote_assignor,
            "group_instance_id": instance_id,
            "isolation_level": isolation,
        }
        if protocol == "classic":
            settings |= {"session_timeout_ms": session_ms, "heartbeat_interval_ms": 200}
        consumer = self.consumer(
            group,
            auto_offset_reset="earliest",
            **{name: value for name, value in settings.items() if value is not None},
        )
        consumer.subscribe(topics or ["^" + str(pattern).removeprefix("^")])
        self.members[named["as"]] = consumer
        self._positions[named["as"]] = {}

    def poll(self, wait_ms: int, **named: Any) -> dict[str, Any]:
        consumer = self.members[named["as"]]
        first = consumer.poll(wait_ms / 1000)
        messages: list[Any] = [] if first is None else [first, *consumer.consume(1000, 0)]
        for message in messages:
            if message.error() is not None:
                self._report(message.error())
        positions = self._positions[named["as"]]
        for message in messages:
            positions[message.topic(), message.partition()] = message.offset() + 1
        return {
            "assignment": by_topic(consumer.assignment()),
            "records": [
                {
                    "topic": message.topic(),
                    "partition": message.partition(),
                    "offset": message.offset(),
                    "key": encoded(message.key()),
                    "value": encoded(message.value()),
                }
                for message in messages
            ],
        }

    def _report(self, error: KafkaError) -> None:
        if error.code() == KafkaError._FENCED:
            raise Refused("FENCED_INSTANCE_ID", error.str())
        raise KafkaException(error)

    def commit(self, offsets: Offsets | None, **named: Any) -> None:
        consumer = self.members[named["as"]]
        polled = self._positions[named["as"]]
        owned = {(place.topic, place.partition) for place in consumer.assignment()}
        wanted = (
            [TopicPartition(*place, offset) for place, offset in polled.items() if place in owned]
            if offsets is None
            else places(offsets)
        )
        for done in consumer.commit(offsets=wanted, asynchronous=False) or []:
            if done.error is not None:
                raise KafkaException(done.error)

    def leave(self, **named: Any) -> None:
        self._positions.pop(named["as"])
        self.members.pop(named["as"]).close()

    def committed(self, group: str, topic: str, partitions: list[int]) -> dict[str, int]:
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, each) for each in partitions])
        [future] = self.admin.list_consumer_group_offsets([asked]).values()
        found = outcome(future).topic_partitions
        return by_partition({place.partition: max(place.offset, -1) for place in found})

    def share_join(self, group: str, topics: list[str], mode: str, **named: Any) -> None:
        consumer = ShareConsumer(
            {**self.settings, "group.id": group, "share.acknowledgement.mode": mode},
        )
        consumer.subscribe(topics)
        self._share_members[named["as"]] = consumer

    def share_poll(self, wait_ms: int, **named: Any) -> list[dict[str, Any]]:
        messages = list(self._share_members[named["as"]].poll(wait_ms / 1000))
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        return [
            {
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": message.offset(),
                "value": encoded(message.value()),
                "deliveries": message.delivery_count(),
            }
            for message in messages
        ]

    def share_acknowledge(self, records: list[dict[str, Any]], **named: Any) -> None:
        consumer = self._share_members[named["as"]]
        for record in records:
            kind = AcknowledgeType[record["kind"].upper()]
            consumer.acknowledge_offset(record["topic"], record["partition"], record["offset"], kind)
        for error in consumer.commit_sync(PATIENCE_SECONDS).values():
            if error is not None:
                raise error

    def share_leave(self, **named: Any) -> None:
        self._share_members.pop(named["as"]).close()

    def close_members(self) -> None:
        for member in self.members.values():
            member.close()
        for share_member in self._share_members.values():
            share_member.close()

    def list_groups(self) -> dict[str, Any]:
        found = outcome(self.admin.list_consumer_groups())
        for error in found.errors or []:
            raise error
        return {
            each.group_id: {"state": STATES[each.state.name], "type": each.type.name.lower()}
            for each in found.valid
        }

    def describe_group(self, group: str) -> dict[str, Any]:
        found = outcome(self.admin.describe_consumer_groups([group])[group])
        return {
            "state": STATES[found.state.name],
            "type": found.type.name.lower(),
            "protocol": found.partition_assignor,
            "members": [
                {
                    "client_id": member.client_id,
                    "instance_id": member.group_instance_id,
                    "assignment": by_topic(member.assignment.topic_partitions if member.assignment else []),
                }
                for member in found.members
            ],
        }

    def delete_groups(self, groups: list[str]) -> dict[str, Any]:
        return {
            group: error_of(future) for group, future in self.admin.delete_consumer_groups(groups).items()
        }

    def alter_group_offsets(self, group: str, offsets: Offsets) -> None:
        wanted = ConsumerGroupTopicPartitions(group, places(offsets))
        [future] = self.admin.alter_consumer_group_offsets([wanted]).values()
        for place in outcome(future).topic_partitions:
            if place.error is not None:
                raise KafkaException(place.error)
