"""CreateTopics, DeleteTopics and CreatePartitions in every version, with every way to get them wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, describe, wait_until_served
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.uuids import ZERO_UUID

NO_BROKER = 4711


@pytest.fixture
def node_id(raw: RawClient) -> int:
    """The id of the only broker."""
    (node,) = raw.send(MetadataRequest(topics=[]), 12).brokers
    return int(node.node_id)


def create(
    raw: RawClient, *topics: CreatableTopic, version: int = 7, **more: Any
) -> list[CreatableTopicResult]:
    """Send a CreateTopics request; its results in the order of their names."""
    response = raw.send(CreateTopicsRequest(topics=list(topics), **more), version)
    return sorted(response.topics, key=lambda result: result.name)


def topic(name: str, partitions: int = 1, replication_factor: int = 1, **more: Any) -> CreatableTopic:
    """A topic to create."""
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor, **more)


def assigned(name: str, *assignments: tuple[int, list[int]]) -> CreatableTopic:
    """A topic to create with its replicas."""
    given = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assignments]
    return topic(name, -1, -1, assignments=given)


def configured(name: str, *configs: tuple[str, str | None]) -> CreatableTopic:
    """A topic to create with configs."""
    return topic(name, configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs])


@pytest.mark.parametrize("version", range(2, 8))
def test_create(version: int, raw: RawClient, topic_name: str) -> None:
    """What the answer tells of a new topic, version by version."""
    wanted = configured(topic_name, ("retention.ms", "12345"))
    wanted.num_partitions = 3
    (result,) = create(raw, wanted, version=version)
    assert (result.name, result.error_code, result.error_message) == (topic_name, ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    configs = {config.name: config for config in result.configs or ()}
    if version >= 5:
        assert configs["retention.ms"].value == "12345"
        assert configs["retention.ms"].config_source == 1
        assert configs["cleanup.policy"].value == "delete"
        assert configs["cleanup.policy"].config_source == 5
        assert not any(config.is_sensitive or config.read_only for config in configs.values())
        assert list(configs) == sorted(configs)
        assert len(configs) == 33
    else:
        assert configs == {}
    wait_until_served(raw, topic_name, 3)
    found = describe(raw, topic_name)
    assert [partition.partition_index for partition in found.partitions] == [0, 1, 2]
    assert found.topic_id != ZERO_UUID
    if version >= 7:
        assert result.topic_id == found.topic_id


@pytest.mark.parametrize("version", range(2, 8))
def test_defaults(version: int, raw: RawClient, topic_name: str) -> None:
    """-1 stands for the broker's defaults, in every version."""
    (result,) = create(raw, topic(topic_name, -1, -1), version=version)
    assert result.error_code == ErrorCode.NONE
    wait_until_served(raw, topic_name, 1)


@pytest.mark.parametrize("version", range(2, 8))
def test_validate_only(version: int, raw: RawClient, topic_name: str) -> None:
    """The answer is that of a creation, but nothing is made."""
    (result,) = create(raw, topic(topic_name, 2), version=version, validate_only=True)
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert result.num_partitions == (2 if version >= 5 else -1)
    assert describe(raw, topic_name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT
REFUSED: dict[str, tuple[Callable[[str, int], CreatableTopic], ErrorCode, str]] = {
    "no partitions": (
        lambda name, node: topic(name, 0),
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    "negative partitions": (
        lambda name, node: topic(name, -2),
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    "no replicas": (
        lambda name, node: topic(name, 0, 0),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    "more replicas than brokers": (
        lambda name, node: topic(name, 1, 2),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached "
        "because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
    ),
    "very many partitions": (
        lambda name, node: topic(name, 10_001),
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of partitions per request.",
    ),
    "assignment and partitions": (
        lambda name, node: topic(name, 1, -1, assignments=assigned(name, (0, [node])).assignments),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    "assignment and replication factor": (
        lambda name, node: topic(name, -1, 1, assignments=assigned(name, (0, [node])).assignments),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    "assignment with a gap": (
        lambda name, node: assigned(name, (1, [node])),
        ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    "assignment of a negative partition": (
        lambda name, node: assigned(name, (-1, [node])),
        ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    "partition assigned twice": (
        lambda name, node: assigned(name, (0, [node]), (0, [node])),
        ASSIGNMENT,
        "Found multiple manual partition assignments for partition 0",
    ),
    "assigned to nobody": (
        lambda name, node: assigned(name, (0, [NO_BROKER])),
        ASSIGNMENT,
        f"The manual partition assignment includes broker {NO_BROKER}, but no such broker is registered.",
    ),
    "no replicas assigned": (
        lambda name, node: assigned(name, (0, [])),
        ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    "unknown config": (
        lambda name, node: configured(name, ("nope", "1")),
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: nope",
    ),
    "null config": (
        lambda name, node: configured(name, ("retention.ms", None)),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: retention.ms",
    ),
    "config of the wrong type": (
        lambda name, node: configured(name, ("retention.ms", "x")),
        ErrorCode.INVALID_CONFIG,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    "config out of range": (
        lambda name, node: configured(name, ("retention.ms", "-5")),
        ErrorCode.INVALID_CONFIG,
        "Invalid value -5 for configuration retention.ms: Value must be at least -1",
    ),
    "config that is no choice": (
        lambda name, node: configured(name, ("cleanup.policy", "foo")),
        ErrorCode.INVALID_CONFIG,
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    "tiered storage": (
        lambda name, node: configured(name, ("remote.storage.enable", "true")),
        ErrorCode.INVALID_CONFIG,
        "Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("validate_only", [True, False])
def test_refused(case: str, validate_only: bool, raw: RawClient, node_id: int, topic_name: str) -> None:
    """The error and its text, whether or not the topic was really meant to be made."""
    make, code, message = REFUSED[case]
    (result,) = create(raw, make(topic_name, node_id), validate_only=validate_only)
    assert (ErrorCode(result.error_code), result.error_message) == (code, message)
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    assert describe(raw, topic_name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


ILLEGAL = " contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
NAMES = {
    "": "Topic name is invalid: the empty string is not allowed",
    ".": "Topic name is invalid: '.' is not allowed",
    "..": "Topic name is invalid: '..' is not allowed",
    "b ad": f"Topic name is invalid: 'b ad'{ILLEGAL}",
    "ünïcode": f"Topic name is invalid: 'ünïcode'{ILLEGAL}",
    "x"
    * 250: f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:10] or "empty")
def test_bad_names(name: str, raw: RawClient) -> None:
    """Names that no topic can have."""
    (result,) = create(raw, topic(name))
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, NAMES[name])


def test_the_metadata_topic(raw: RawClient) -> None:
    """The log of the metadata itself is nobody's to create."""
    (result,) = create(raw, topic("__cluster_metadata"))
    message = "Creation of internal topic __cluster_metadata is prohibited."
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_names_that_exist_or_collide(raw: RawClient, topic_name: str) -> None:
    """A second topic of the name, or of one that metrics could not tell from it, is refused."""
    create_topic(raw, topic_name + ".a")
    existing, colliding = create(raw, topic(topic_name + ".a"), topic(topic_name + "_a"))
    assert existing.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert existing.error_message == f"Topic '{topic_name}.a' already exists."
    assert colliding.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert colliding.error_message == f"Topic '{topic_name}_a' collides with existing topic: {topic_name}.a"


def test_one_bad_topic_does_not_spoil_the_others(raw: RawClient, topic_name: str) -> None:
    """Of a request with a good, a bad and a doubled topic only the good one is made."""
    good, bad, doubled = (f"{topic_name}-{which}" for which in ("a", "b", "c"))
    results = create(raw, topic(doubled), topic(bad, 0), topic(good, 2), topic(doubled, 4))
    assert [(result.name, ErrorCode(result.error_code).name) for result in results] == [
        (good, "NONE"),
        (bad, "INVALID_PARTITIONS"),
        (doubled, "INVALID_REQUEST"),
    ]
    assert results[2].error_message == "Duplicate topic name."
    wait_until_served(raw, good, 2)


def test_manual_assignment(raw: RawClient, node_id: int, topic_name: str) -> None:
    """Partitions may be given in any order."""
    (result,) = create(raw, assigned(topic_name, (1, [node_id]), (0, [node_id])))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)
    wait_until_served(raw, topic_name, 2)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time(timeout_ms: int, raw: RawClient, topic_name: str) -> None:
    """With no time at all nothing is created, deleted or grown."""
    (result,) = create(raw, topic(topic_name), timeout_ms=timeout_ms)
    assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert describe(raw, topic_name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create_topic(raw, topic_name)
    assert delete(raw, DeleteTopicState(name=topic_name), timeout_ms=timeout_ms) == [
        (topic_name, "REQUEST_TIMED_OUT", None, False)
    ]
    assert grow(raw, more(topic_name, 2), timeout_ms=timeout_ms) == [(topic_name, "REQUEST_TIMED_OUT", None)]
    assert len(describe(raw, topic_name).partitions) == 1


Deleted = tuple[str | None, str, str | None, bool]


def delete(raw: RawClient, *topics: DeleteTopicState, timeout_ms: int = 10_000) -> list[Deleted]:
    """Delete by name or id: (name, error, message, whether the answer has an id)."""
    response = raw.send(DeleteTopicsRequest(topics=list(topics), timeout_ms=timeout_ms), 6)
    return [
        (
            result.name,
            ErrorCode(result.error_code).name,
            result.error_message,
            result.topic_id != ZERO_UUID,
        )
        for result in response.responses
    ]


def wait_until_gone(raw: RawClient, name: str) -> None:
    """Wait until the topic is unknown."""
    eventually(lambda: describe(raw, name).error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("version", range(1, 6))
def test_delete_by_name(version: int, raw: RawClient, topic_name: str) -> None:
    """Names in the versions before ids; the second attempt finds nothing."""
    create_topic(raw, topic_name)
    request = DeleteTopicsRequest(topic_names=[topic_name, topic_name + "-x"], timeout_ms=10_000)
    results = {result.name: result for result in raw.send(request, version).responses}
    assert results[topic_name].error_code == ErrorCode.NONE
    assert results[topic_name].error_message is None
    missing = results[topic_name + "-x"]
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (missing.error_message is not None) == (version >= 5)
    wait_until_gone(raw, topic_name)


def test_delete_by_id_and_create_again(raw: RawClient, topic_name: str) -> None:
    """A topic of the same name is another topic, with another id and no records."""
    first = create_topic(raw, topic_name)
    assert delete(raw, DeleteTopicState(name=None, topic_id=first)) == [(topic_name, "NONE", None, True)]
    wait_until_gone(raw, topic_name)
    second = create_topic(raw, topic_name)
    assert second != first
    ((name, error, message, has_id),) = delete(raw, DeleteTopicState(name=None, topic_id=first))
    assert (name, error, has_id) == (None, "UNKNOWN_TOPIC_ID", True)
    assert message
    assert delete(raw, DeleteTopicState(name=topic_name)) == [(topic_name, "NONE", None, True)]


def test_deletions_that_contradict_themselves(raw: RawClient, topic_name: str) -> None:
    """Both or neither of name and id, the same topic twice: refused, and the topic stays."""
    topic_id = create_topic(raw, topic_name)
    by_name, by_id = DeleteTopicState(name=topic_name), DeleteTopicState(name=None, topic_id=topic_id)
    both = DeleteTopicState(name=topic_name, topic_id=topic_id)
    refused = "INVALID_REQUEST"
    assert delete(raw, both) == [
        (topic_name, refused, "You may not specify both topic name and topic id.", True)
    ]
    assert delete(raw, DeleteTopicState(name=None)) == [
        (None, refused, "Neither topic name nor id were specified.", False)
    ]
    assert delete(raw, by_name, by_name) == [(topic_name, refused, "Duplicate topic name.", False)]
    assert delete(raw, by_id, by_id) == [(None, refused, "Duplicate topic id.", True)]
    message = "The provided topic name maps to an ID that was already supplied."
    assert delete(raw, by_name, by_id) == [(topic_name, refused, message, True)]
    assert describe(raw, topic_name).error_code == ErrorCode.NONE


def test_deletion_of_nothing(raw: RawClient) -> None:
    """Names that cannot exist do not exist; an empty request has an empty answer."""
    for name in ("b ad", "", "__cluster_metadata"):
        ((answered, error, _, has_id),) = delete(raw, DeleteTopicState(name=name))
        assert (answered, error, has_id) == (name, "UNKNOWN_TOPIC_OR_PARTITION", False)
    assert delete(raw) == []


def more(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    """A topic to grow."""
    given = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given or None)


def grow(
    raw: RawClient,
    *topics: CreatePartitionsTopic,
    version: int = 3,
    validate_only: bool = False,
    timeout_ms: int = 10_000,
) -> list[tuple[str, str, str | None]]:
    """Send a CreatePartitions request: (name, error, message)."""
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    return [
        (result.name, ErrorCode(result.error_code).name, result.error_message)
        for result in raw.send(request, version).results
    ]


@pytest.mark.parametrize("version", range(4))
def test_more_partitions(version: int, raw: RawClient, node_id: int, topic_name: str) -> None:
    """A topic grows, with replicas chosen or given; validate_only changes nothing."""
    create_topic(raw, topic_name)
    assert grow(raw, more(topic_name, 3), version=version, validate_only=True) == [(topic_name, "NONE", None)]
    assert len(describe(raw, topic_name).partitions) == 1
    assert grow(raw, more(topic_name, 2), version=version) == [(topic_name, "NONE", None)]
    wait_until_served(raw, topic_name, 2)
    assert grow(raw, more(topic_name, 3, [node_id]), version=version) == [(topic_name, "NONE", None)]
    wait_until_served(raw, topic_name, 3)


def test_partitions_refused(raw: RawClient, node_id: int, topic_name: str) -> None:
    """Every way to ask for the wrong number or the wrong replicas, and its text."""
    create_topic(raw, topic_name, partitions=2)
    name, unknown = topic_name, topic_name + "-x"
    assignment = "The manual partition assignment includes"
    cases = [
        (more(name, 2), "INVALID_PARTITIONS", "Topic already has 2 partition(s)."),
        *(
            (
                more(name, count),
                "INVALID_PARTITIONS",
                f"The topic {name} currently has 2 partition(s); {count} would not be an increase.",
            )
            for count in (1, 0, -1)
        ),
        (more(unknown, 3), "UNKNOWN_TOPIC_OR_PARTITION", None),
        (
            more(name, 3, [node_id], [node_id]),
            "INVALID_REPLICA_ASSIGNMENT",
            "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            more(name, 3, [NO_BROKER]),
            "INVALID_REPLICA_ASSIGNMENT",
            f"{assignment} broker {NO_BROKER}, but no such broker is registered.",
        ),
        (
            more(name, 3, [node_id, node_id]),
            "INVALID_REPLICA_ASSIGNMENT",
            f"{assignment} the broker {node_id} more than once.",
        ),
        (more(name, 3, []), "INVALID_REPLICA_ASSIGNMENT", f"{assignment} an empty replica list."),
    ]
    for wanted, error, message in cases:
        assert grow(raw, wanted) == [(wanted.name, error, message)]
    assert grow(raw, more(name, 3), more(name, 4)) == [(name, "INVALID_REQUEST", "Duplicate topic name.")]
    assert sorted(grow(raw, more(name, 3), more(unknown, 3))) == [
        (name, "NONE", None),
        (unknown, "UNKNOWN_TOPIC_OR_PARTITION", None),
    ]
    wait_until_served(raw, topic_name, 3)
