"""Metadata stores on a directory of a test, with a clock that stands still."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.metadata.controller.broker_registration import plan_broker_departure, plan_broker_registration
from ottla.metadata.controller.create_topics import plan_create_topics
from ottla.metadata.image import MetadataDelta
from ottla.metadata.records import BrokerEndpoint
from ottla.metadata.store import MetadataStore
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.metadata.images import broker_config

NOW_MS = 1_700_000_000_000


def new_uuid() -> bytes:
    return uuid.uuid4().bytes


def open_store(directory: Path | Sequence[Path], **options: Any) -> MetadataStore:
    """Open the metadata of one or more log directories."""
    directories = [directory] if isinstance(directory, Path) else list(directory)
    return MetadataStore.open(directories, now_ms=NOW_MS, new_uuid=new_uuid, **options)


def register(store: MetadataStore, port: int = 9092) -> MetadataDelta:
    """Let the broker of this store come up."""
    plan = plan_broker_registration(
        store.image,
        node_id=store.node_id,
        next_offset=store.next_offset,
        incarnation_id=new_uuid(),
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=port)],
        rack=None,
        log_dirs=list(store.directory_ids.values()),
    )
    return store.commit(plan.records, NOW_MS)


def depart(store: MetadataStore) -> None:
    """Let it go in good order."""
    store.commit(plan_broker_departure(store.image, node_id=store.node_id).records, NOW_MS)
    store.close(NOW_MS)


def create_topic(store: MetadataStore, name: str, partitions: int = 1, **configs: str) -> None:
    """Make a topic as a client would; config names with underscores for dots."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    topic.configs = [CreatableTopicConfig(name=key.replace("_", "."), value=configs[key]) for key in configs]
    plan = plan_create_topics(
        store.image,
        CreateTopicsRequest(topics=[topic]),
        node_id=store.node_id,
        config=broker_config(),
        new_uuid=new_uuid,
    )
    assert plan.results.topics[0].error_code == ErrorCode.NONE, plan.results
    store.commit(plan.records, NOW_MS)
