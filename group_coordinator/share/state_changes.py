"""Which share partitions of a group need a state, have got one, or lost it with their topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.group_coordinator.share.state import ShareGroup, StateMetadata, TopicState
from ottla.group_coordinator.topics import Topics
from ottla.wire.dataclass import replace
from ottla.wire.uuids import Uuid

UNKNOWN_TOPIC = "<UNKNOWN>"  # Kafka's word in the records


def topics_to_initialize(
    metadata: StateMetadata, names: Iterable[str], topics: Topics, now_ms: int, retry_ms: int
) -> dict[Uuid, TopicState]:
    """Partitions of subscribed topics that have no state, and none on its way since less than `retry_ms`."""
    wanted: dict[Uuid, TopicState] = {}
    for name in names:
        topic = topics.by_name(name)
        if topic is None:
            continue
        missing = frozenset(range(topic.partition_count))
        for known, patience_ms in ((metadata.initialized, None), (metadata.initializing, retry_ms)):
            state = known.get(topic.topic_id)
            if state is not None and (patience_ms is None or now_ms - state.since_ms < patience_ms):
                missing -= state.partitions
        if missing:
            wanted[topic.topic_id] = TopicState(name, missing, now_ms)
    return wanted


def with_initializing(metadata: StateMetadata, wanted: Mapping[Uuid, TopicState]) -> StateMetadata:
    """These are being initialised too."""
    return replace(metadata, initializing=_joined(metadata.initializing, wanted))


def with_initialized(
    metadata: StateMetadata, done: Mapping[Uuid, frozenset[int]], topics: Topics, now_ms: int
) -> StateMetadata:
    """These have their state now."""
    added = {}
    for topic_id, partitions in done.items():
        topic = topics.by_id(topic_id)
        added[topic_id] = TopicState(UNKNOWN_TOPIC if topic is None else topic.name, partitions, now_ms)
    return replace(
        metadata,
        initializing=_without(metadata.initializing, done),
        initialized=_joined(metadata.initialized, added),
    )


def without_topics(metadata: StateMetadata, gone: Iterable[Uuid]) -> StateMetadata:
    """These topics have no state any more."""
    removed = set(gone)
    return StateMetadata(
        {each: state for each, state in metadata.initializing.items() if each not in removed},
        {each: state for each, state in metadata.initialized.items() if each not in removed},
        {each: name for each, name in metadata.deleting.items() if each not in removed},
    )


def has_unassigned(group: ShareGroup) -> bool:
    """Is there a subscribed partition with a state that no member is meant to have, or the other way round?"""
    if not group.members:
        return False
    assigned: dict[Uuid, frozenset[int]] = {}
    for target in group.target.values():
        for topic_id, partitions in target.items():
            assigned[topic_id] = assigned.get(topic_id, frozenset()) | partitions
    return any(
        topic.name in group.name_counts and assigned.get(topic_id) != topic.partitions
        for topic_id, topic in group.state_metadata.initialized.items()
    )


def _joined(some: Mapping[Uuid, TopicState], others: Mapping[Uuid, TopicState]) -> dict[Uuid, TopicState]:
    joined = dict(some)
    for topic_id, topic in others.items():
        before = joined.get(topic_id)
        partitions = topic.partitions if before is None else before.partitions | topic.partitions
        joined[topic_id] = TopicState(topic.name, partitions, topic.since_ms)
    return joined


def _without(
    topics: Mapping[Uuid, TopicState], done: Mapping[Uuid, frozenset[int]]
) -> dict[Uuid, TopicState]:
    left = {}
    for topic_id, topic in topics.items():
        partitions = topic.partitions - done.get(topic_id, frozenset())
        if partitions:
            left[topic_id] = topic._replace(partitions=partitions)
    return left
