"""The same groups through Kafka's own assignors: the same assignments."""

from hypothesis import HealthCheck, given, settings

from ottla.group_coordinator.consumer.assignors import ASSIGNORS
from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, Partitions
from tests.group_coordinator.consumer.groups import group_specs
from tests.group_coordinator.consumer.kafka_groups import KafkaGroups

shared_process = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)


@shared_process
@given(group=group_specs(homogeneous=False))
def test_uniform_with_different_subscriptions(kafka: KafkaGroups, group: GroupSpec) -> None:
    """The order of members and topics is fixed here, so every partition has the same owner."""
    assert ASSIGNORS["uniform"](group) == kafka.assign("uniform", group)


@shared_process
@given(group=group_specs(homogeneous=True, max_topics=1))
def test_uniform_with_one_topic(kafka: KafkaGroups, group: GroupSpec) -> None:
    """With one topic there is no order of topics, and every partition has the same owner."""
    assert ASSIGNORS["uniform"](group) == kafka.assign("uniform", group)


@shared_process
@given(group=group_specs(homogeneous=True))
def test_uniform_with_equal_subscriptions(kafka: KafkaGroups, group: GroupSpec) -> None:
    """Kafka takes topics in the order of a hash table, so counts are compared: of each member, and of what stays."""

    def shape(result: dict[str, Partitions]) -> dict[str, tuple[int, int]]:
        return {
            member_id: (
                sum(map(len, assigned.values())),
                sum(
                    len(held & assigned.get(topic, set()))
                    for topic, held in group.members[member_id].assigned.items()
                ),
            )
            for member_id, assigned in result.items()
        }

    assert shape(ASSIGNORS["uniform"](group)) == shape(kafka.assign("uniform", group))


@shared_process
@given(group=group_specs(homogeneous=False) | group_specs(homogeneous=True))
def test_range(kafka: KafkaGroups, group: GroupSpec) -> None:
    """Ranges do not depend on any order."""
    assert ASSIGNORS["range"](group) == kafka.assign("range", group)
