"""A member on kafka-python."""

from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from compat_tests.group_members.telling import Telling, end_of_input
from compat_tests.kafka_python_listener import FreshOffsets

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def run(settings: dict[str, str]) -> None:
    """Be a member until standard input ends."""
    topic = settings["topic"]
    ended = end_of_input()
    telling = Telling()
    consumer = KafkaConsumer(
        bootstrap_servers=settings["bootstrap.servers"],
        group_id=settings["group.id"],
        group_instance_id=settings.get("group.instance.id"),
        partition_assignment_strategy=[ASSIGNORS[settings["partition.assignment.strategy"]]],
        session_timeout_ms=int(settings["session.timeout.ms"]),
        heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.subscribe([topic], listener=FreshOffsets(consumer))
    while not ended.is_set():
        found = consumer.poll(timeout_ms=100)
        telling.owns([each.partition for each in consumer.assignment()])
        if found:
            wanted = telling.read({each.partition: [r.offset for r in rows] for each, rows in found.items()})
            try:
                consumer.commit(
                    {
                        TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
                        for partition, offset in wanted.items()
                    }
                )
                telling.committed(wanted)
            except KafkaError as error:
                telling.failed(error)
    consumer.close()
    telling.left()
