"""How many elements a message has, nested ones included."""

from ottla.wire.counting import element_counter, element_releaser
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def count(message: object, limit: int = 1000) -> int:
    return element_counter(type(message))(message, limit)


def test_nested_arrays_are_counted() -> None:
    """Topics and their partitions, but not the numbers of replicas, which one call writes."""
    partition = MetadataResponsePartition(replica_nodes=list(range(500)))
    topics = [
        MetadataResponseTopic(partitions=[partition] * 3),
        MetadataResponseTopic(partitions=[partition]),
    ]
    assert count(MetadataResponse(topics=topics)) == 2 + 4


def test_what_structures_hold_is_counted() -> None:
    """The assignment of each member, beside the member itself."""
    assignment = Assignment(
        [TopicPartitions(topic_name=f"t{number}", partitions=[0, 1]) for number in range(3)]
    )
    group = DescribedGroup(members=[Member(assignment=assignment, target_assignment=assignment)] * 2)
    assert count(ConsumerGroupDescribeResponse(groups=[group])) == 1 + 2 + 2 * 2 * 3


def test_strings_are_counted() -> None:
    """Each is written by itself."""
    assert count(FindCoordinatorRequest(coordinator_keys=["a", "b", "c"])) == 3


def test_nothing_is_no_element() -> None:
    """Neither null nor an empty array, nor a message without any."""
    assert count(MetadataRequest(topics=None)) == 0
    assert count(MetadataResponse()) == 0
    assert count(ApiVersionsRequest()) == 0


def test_it_stops_soon_after_the_limit() -> None:
    """A message beyond the limit is beyond it, by how much does not matter."""
    topic = MetadataResponseTopic(partitions=[MetadataResponsePartition()] * 10)
    assert 50 < count(MetadataResponse(topics=[topic] * 30), limit=50) <= 50 + 10


def test_elements_are_let_go_of() -> None:
    """Those of nested arrays, too; null is no array."""
    topics = [MetadataResponseTopic(partitions=[MetadataResponsePartition()] * 3) for _ in range(4)]
    partitions = [topic.partitions for topic in topics]
    response = MetadataResponse(topics=topics)
    element_releaser(MetadataResponse)(response)
    assert response.topics == []
    assert partitions == [[]] * 4
    element_releaser(MetadataRequest)(MetadataRequest(topics=None))
