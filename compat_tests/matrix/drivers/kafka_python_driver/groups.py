"""Members of groups, and what an administrator asks of groups."""

from typing import Any

from kafka import TopicPartition
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

from compat_tests.kafka_python_listener import FreshOffsets
from compat_tests.matrix.drivers.answers import Offsets, polled
from compat_tests.matrix.drivers.kafka_python_driver.library import (
    Library,
    name_or_none,
    places,
)
from compat_tests.matrix.drivers.kafka_python_driver.member import Member
from compat_tests.matrix.drivers.serving import Refused, Unsupported, by_partition

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Members(Library):
    """Members by the name that a case gives them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.members: dict[str, Member] = {}

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
        if protocol != "classic":
            raise Unsupported(f"kafka-python has no group protocol {protocol}")
        settings: dict[str, Any] = {"isolation_level": isolation or "read_uncommitted"}
        if assignor is not None:
            settings["partition_assignment_strategy"] = [ASSIGNORS[assignor]]
        if session_ms is not None:
            settings["session_timeout_ms"] = session_ms
        consumer = self.consumer(
            group, auto_offset_reset="earliest", group_instance_id=instance_id, **settings
        )
        consumer.subscribe(topics or (), pattern=pattern, listener=FreshOffsets(consumer))
        self.members[named["as"]] = Member(consumer)

    def poll(self, wait_ms: int, **named: Any) -> dict[str, Any]:
        return polled(*self.members[named["as"]].poll(wait_ms))

    def commit(self, offsets: Offsets | None, **named: Any) -> None:
        self.members[named["as"]].commit(None if offsets is None else places(offsets))

    def leave(self, **named: Any) -> None:
        self.members.pop(named["as"]).close()

    def close_members(self) -> None:
        for member in self.members.values():
            member.close()


class GroupAdmin(Library):
    """What an administrator asks of groups."""

    def committed(self, group: str, topic: str, partitions: list[int]) -> dict[str, int]:
        wanted = [TopicPartition(topic, each) for each in partitions]
        found = self.admin.list_group_offsets({group: wanted})[group]
        return by_partition({place.partition: each.offset for place, each in found.items()})

    def list_groups(self) -> dict[str, Any]:
        return {
            each["group_id"]: {"state": each["group_state"], "type": each["group_type"]}
            for each in self.admin.list_groups()
        }

    def describe_group(self, group: str) -> dict[str, Any]:
        found = self.admin.describe_groups([group])[group]
        if found["error"]:
            raise Refused(name_or_none(found["error"]) or "LOCAL", found["error"])
        return {
            "state": found["group_state"],
            "type": None,
            "protocol": found["protocol_data"],
            "members": [
                {
                    "client_id": each["client_id"],
                    "instance_id": each["group_instance_id"],
                    "assignment": _assignment(each["member_assignment"]),
                }
                for each in found["members"]
            ],
        }

    def delete_groups(self, groups: list[str]) -> dict[str, Any]:
        done = self.admin.delete_groups(groups)
        return {group: None if each == "OK" else name_or_none(each) for group, each in done.items()}

    def alter_group_offsets(self, group: str, offsets: Offsets) -> None:
        wanted = {place: OffsetAndMetadata(offset, "", -1) for place, offset in places(offsets).items()}
        for error in self.admin.alter_group_offsets(group, wanted).values():
            name = name_or_none(error)
            if name is not None:
                raise Refused(name)

    def delete_group_offsets(self, group: str, topic: str, partitions: list[int]) -> dict[str, Any]:
        wanted = [TopicPartition(topic, each) for each in partitions]
        done = self.admin.delete_group_offsets(group, wanted)
        return by_partition({place.partition: name_or_none(error) for place, error in done.items()})

    def remove_members(self, group: str, instance_ids: list[str]) -> None:
        wanted = [MemberToRemove(group_instance_id=each) for each in instance_ids]
        for error in self.admin.remove_group_members(group, wanted).values():
            name = name_or_none(error)
            if name is not None:
                raise Refused(name)


def _assignment(told: Any) -> dict[str, list[int]]:
    topics = told.get("assigned_partitions", []) if isinstance(told, dict) else []
    return {each["topic"]: sorted(each["partitions"]) for each in topics}
