"""Groups of real clients under load, as the cases of both files of group tests set them up."""

from collections import Counter

from kafka import KafkaAdminClient

from compat_tests.group_run import CONSUMER_PROTOCOL, GroupRun
from compat_tests.load import Load

PARTITIONS = 8
SESSION_TIMEOUT_MS = 4000
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
ASSIGNORS = {
    "kafka_python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "confluent": ("range", "roundrobin", "cooperative-sticky", CONSUMER_PROTOCOL),
    "aiokafka_library": ("range", "roundrobin", "sticky"),
    "java-3.9": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "java-4.3": ("range", "roundrobin", "sticky", "cooperative-sticky", CONSUMER_PROTOCOL),
}


def start_group(bootstrap: str, topic: str, assignor: str) -> tuple[GroupRun, Load]:
    """A group with an assignor on a topic of its own, and a load for it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    wanted = {"num_partitions": PARTITIONS, "replication_factor": 1}
    admin.create_topics({topic: wanted}, wait_for_metadata=True)
    admin.close()
    group = GroupRun(bootstrap, topic, PARTITIONS, assignor=assignor, session_timeout_ms=SESSION_TIMEOUT_MS)
    return group, Load(bootstrap, topic, partitions=PARTITIONS, idempotent=True, pause_seconds=0.05)


def finish(group: GroupRun, load: Load) -> None:
    """Wait until everything is read, let everyone leave, and hold the group to at least once."""
    assert load.failed == []
    counts = Counter(partition for partition, _ in load.acknowledged)
    ends = [counts[partition] for partition in range(PARTITIONS)]
    group.wait_for_end(ends)
    for member in list(group.members):
        member.leave()
    group.check(ends)
