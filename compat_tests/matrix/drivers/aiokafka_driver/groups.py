"""Members of classic groups; aiokafka knows no other."""

import itertools
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from compat_tests.matrix.drivers.aiokafka_driver.library import Library, places
from compat_tests.matrix.drivers.answers import Offsets, polled
from compat_tests.matrix.drivers.serving import Unsupported

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Groups(Library):
    """Members by the name that a case gives them; their heartbeats go on between the calls."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._members: dict[str, AIOKafkaConsumer] = {}
        self._instances: dict[str, str] = {}

    async def join(
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
        if protocol != "classic" or remote_assignor is not None:
            raise Unsupported("aiokafka knows the classic protocol only")
        if assignor is not None and assignor not in ASSIGNORS:
            raise Unsupported(f"aiokafka has no assignor {assignor}")
        consumer = AIOKafkaConsumer(
            **self.settings,
            group_id=group,
            group_instance_id=instance_id,
            partition_assignment_strategy=[ASSIGNORS[assignor or "range"]],
            isolation_level=isolation or "read_uncommitted",
            session_timeout_ms=session_ms or 10_000,
            heartbeat_interval_ms=200,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=1_000,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        if pattern is None:
            consumer.subscribe(topics)
        else:
            consumer.subscribe(pattern=pattern)
        self._members[named["as"]] = consumer
        if instance_id is not None:
            self._instances[named["as"]] = instance_id

    async def poll(self, wait_ms: int, **named: Any) -> dict[str, Any]:
        consumer = self._members[named["as"]]
        found = await consumer.getmany(timeout_ms=wait_ms)
        return polled(consumer.assignment(), itertools.chain.from_iterable(found.values()))

    async def commit(self, offsets: Offsets | None = None, **named: Any) -> None:
        consumer = self._members[named["as"]]
        if list(self._instances.values()).count(self._instances.get(named["as"], "")) > 1:
            raise Unsupported("aiokafka commits without its instance id, and so cannot be fenced by it")
        await consumer.commit(None if offsets is None else places(offsets))

    async def leave(self, **named: Any) -> None:
        self._instances.pop(named["as"], None)
        await self._members.pop(named["as"]).stop()

    async def close_members(self) -> None:
        for name in list(self._members):
            await self.leave(**{"as": name})
