"""A member on aiokafka."""

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from compat_tests.group_members.telling import Telling, end_of_input

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


def run(settings: dict[str, str]) -> None:
    """Be a member until standard input ends."""
    asyncio.run(_run(settings))


async def _run(settings: dict[str, str]) -> None:
    topic = settings["topic"]
    ended = end_of_input()
    telling = Telling()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=settings["bootstrap.servers"],
        group_id=settings["group.id"],
        group_instance_id=settings.get("group.instance.id"),
        partition_assignment_strategy=[ASSIGNORS[settings["partition.assignment.strategy"]]],
        session_timeout_ms=int(settings["session.timeout.ms"]),
        heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    while not ended.is_set():
        found = await consumer.getmany(timeout_ms=100, max_records=500)
        telling.owns([each.partition for each in consumer.assignment()])
        if found:
            wanted = telling.read({each.partition: [r.offset for r in rows] for each, rows in found.items()})
            try:
                await consumer.commit(
                    {TopicPartition(topic, partition): offset for partition, offset in wanted.items()}
                )
                telling.committed(wanted)
            except KafkaError as error:
                telling.failed(error)
    await consumer.stop()
    telling.left()
