"""ElectLeaders and the blocks of producer ids."""

from typing import Any

import pytest

from ottla.metadata.controller.elect_leaders import plan_elect_leaders
from ottla.metadata.controller.producer_ids import plan_producer_id_block
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import PartitionChangeRecord, ProducerIdsRecord, RegisterBrokerRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.metadata.images import image_of, running_image, topic_records

PREFERRED, UNCLEAN = 0, 1
ID = b"orders.........."


def elect(image: MetadataImage, kind: int, partitions: dict[str, list[int]] | None) -> Any:
    listed = None
    if partitions is not None:
        listed = [TopicPartitions(topic=name, partitions=ids) for name, ids in partitions.items()]
    return plan_elect_leaders(image, ElectLeadersRequest(election_type=kind, topic_partitions=listed))


def codes(made: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, result.partition_id): result.error_code
        for topic in made.results.replica_election_results
        for result in topic.partition_result
    }


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_who_leads_needs_no_election(kind: int) -> None:
    """On a broker that is up every partition has its preferred leader."""
    made = elect(running_image(*topic_records("orders", 2)), kind, {"orders": [0, 1, 7], "nope": [0]})
    assert codes(made) == {
        ("orders", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("orders", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("orders", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    [orders, nope] = made.results.replica_election_results
    assert orders.partition_result[2].error_message == "No such partition as orders-7"
    assert nope.partition_result[0].error_message == "No such topic as nope"
    assert made.records == []


def test_all_partitions_leaves_out_those_that_need_none() -> None:
    """Null means all; topics are listed with what was elected."""
    made = elect(running_image(*topic_records("orders", 2)), PREFERRED, None)
    assert [topic.topic for topic in made.results.replica_election_results] == ["orders"]
    assert codes(made) == {}


def test_leaderless_partition_is_led_again() -> None:
    """A partition that lost its leader gets it back, cleanly when it is in sync."""
    image = running_image(*topic_records("orders"))
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=ID, leader=-1))
    expected = [PartitionChangeRecord(partition_id=0, topic_id=ID, leader=1)]
    assert elect(image, PREFERRED, {"orders": [0]}).records == expected
    assert elect(image, UNCLEAN, None).records == expected
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[], eligible_leader_replicas=[1]))
    assert codes(elect(image, PREFERRED, {"orders": [0]})) == {
        ("orders", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    }
    assert elect(image, UNCLEAN, {"orders": [0]}).records == [
        PartitionChangeRecord(
            partition_id=0,
            topic_id=ID,
            leader=1,
            isr=[1],
            leader_recovery_state=1,
            eligible_leader_replicas=[],
        )
    ]


def test_nobody_is_up() -> None:
    """Without a live replica neither election is possible."""
    image = image_of(topic_records("orders"))
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=ID, leader=-1))
    assert codes(elect(image, UNCLEAN, {"orders": [0]})) == {
        ("orders", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    }


def test_unknown_kind_of_election() -> None:
    """There are two kinds."""
    with pytest.raises(KafkaError, match="Unknown election type 7") as caught:
        elect(image_of(), 7, {})
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_blocks_of_producer_ids_follow_each_other() -> None:
    """Each block has 1,000 ids, and no id is given twice."""
    image = image_of([RegisterBrokerRecord(broker_id=1, broker_epoch=42)])
    first = plan_producer_id_block(image, node_id=1)
    assert (first.results.first_producer_id, first.results.last_producer_id) == (0, 999)
    assert first.records == [ProducerIdsRecord(broker_id=1, broker_epoch=42, next_producer_id=1000)]
    image.apply_all(first.records, 50)
    second = plan_producer_id_block(image, node_id=1)
    assert (second.results.first_producer_id, second.results.last_producer_id) == (1000, 1999)


def test_producer_ids_run_out() -> None:
    """At the end of the 64-bit numbers there is an error, not a repetition."""
    image = image_of([ProducerIdsRecord(next_producer_id=2**63 - 1000)])
    with pytest.raises(KafkaError):
        plan_producer_id_block(image, node_id=1)
