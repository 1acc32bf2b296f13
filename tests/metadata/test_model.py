"""The store against a plain dict: any order of changes, restarts and crashes leaves what the dict says."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.metadata.controller.alter_configs import plan_incremental_alter_configs
from ottla.metadata.controller.create_partitions import plan_create_partitions
from ottla.metadata.controller.create_topics import plan_create_topics
from ottla.metadata.controller.delete_topics import plan_delete_topics
from ottla.metadata.controller.producer_ids import plan_producer_id_block
from ottla.metadata.store import MetadataSettings, MetadataStore
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.metadata.directories import NOW_MS, depart, new_uuid, open_store, register
from tests.metadata.images import broker_config

NAMES = st.sampled_from(["a", "c.d"])
COUNTS = st.integers(1, 4)
SETTINGS = MetadataSettings(max_bytes_between_snapshots=1500)
CONFIG = broker_config()


class MetadataModel(RuleBasedStateMachine):
    """Topics with their number of partitions and their retention, and the next producer id."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.topics: dict[str, tuple[int, str | None]] = {}
        self.ids: dict[str, bytes] = {}
        self.leader_epochs: dict[tuple[str, int], int] = {}
        self.next_producer_id = -1
        self.store: MetadataStore = None  # type: ignore[assignment]

    @initialize()
    def start(self) -> None:
        self.store = open_store(self.directory, settings=SETTINGS)
        register(self.store)

    def teardown(self) -> None:
        if self.store is not None:
            self.store.close(NOW_MS)
        shutil.rmtree(self.directory)

    @rule(name=NAMES, partitions=COUNTS)
    def create(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        plan = plan_create_topics(
            self.store.image, CreateTopicsRequest(topics=[topic]), node_id=1, config=CONFIG, new_uuid=new_uuid
        )
        self.store.commit(plan.records, NOW_MS)
        assert (plan.results.topics[0].error_code == 0) == (name not in self.topics)
        if name not in self.topics:
            self.topics[name] = (partitions, None)
            self.ids[name] = plan.results.topics[0].topic_id

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
        plan = plan_delete_topics(self.store.image, request, api_version=6, config=CONFIG)
        self.store.commit(plan.records, NOW_MS)
        assert (plan.results.responses[0].error_code == 0) == (name in self.topics)
        self.topics.pop(name, None)
        self.leader_epochs = {key: epoch for key, epoch in self.leader_epochs.items() if key[0] != name}

    @rule(name=NAMES, count=COUNTS)
    def add_partitions(self, name: str, count: int) -> None:
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)]
        )
        plan = plan_create_partitions(self.store.image, request, node_id=1)
        self.store.commit(plan.records, NOW_MS)
        before, retention = self.topics.get(name, (99, None))
        assert (plan.results.results[0].error_code == 0) == (count > before)
        if count > before:
            self.topics[name] = (count, retention)

    @rule(name=NAMES, retention=st.sampled_from(["1", "2", None]))
    def alter(self, name: str, retention: str | None) -> None:
        operation = 1 if retention is None else 0
        change = AlterableConfig(name="retention.ms", config_operation=operation, value=retention)
        resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])
        plan = plan_incremental_alter_configs(
            self.store.image, IncrementalAlterConfigsRequest(resources=[resource]), node_id=1, config=CONFIG
        )
        self.store.commit(plan.records, NOW_MS)
        if name in self.topics:
            self.topics[name] = (self.topics[name][0], retention)

    @rule()
    def take_producer_ids(self) -> None:
        plan = plan_producer_id_block(self.store.image, node_id=1)
        self.store.commit(plan.records, NOW_MS)
        assert plan.results.first_producer_id == max(0, self.next_producer_id)
        self.next_producer_id = plan.results.last_producer_id + 1

    @rule()
    def snapshot(self) -> None:
        self.store.write_snapshot(NOW_MS)

    @rule()
    def snapshot_if_due(self) -> None:
        if self.store.snapshot_due:
            self.store.write_snapshot(NOW_MS)

    @rule(orderly=st.booleans())
    def restart(self, orderly: bool) -> None:
        if orderly:
            depart(self.store)
        else:
            self.store._log.release()
        epoch = self.store.epoch
        self.store = open_store(self.directory, settings=SETTINGS)
        assert self.store.epoch == epoch + 1
        register(self.store)

    @invariant()
    def image_is_what_the_dict_says(self) -> None:
        if self.store is None:
            return
        image = self.store.image
        assert {
            name: (len(topic.partitions), image.topic_configs(name).get("retention.ms"))
            for name, topic in image.topics_by_name.items()
        } == self.topics
        assert image.topic_names() == sorted(self.topics)
        assert {name for _, name in image.configs} <= {*self.topics, ""}
        assert image.next_producer_id == self.next_producer_id
        assert image.last_offset == self.store.next_offset - 1
        for name in self.topics:
            assert image.topics_by_id[self.ids[name]].name == name

    @invariant()
    def leader_epochs_only_grow(self) -> None:
        if self.store is None:
            return
        for name, topic in self.store.image.topics_by_name.items():
            for partition_id, partition in topic.partitions.items():
                assert partition.leader == 1
                assert partition.leader_epoch >= self.leader_epochs.get((name, partition_id), 0)
                self.leader_epochs[name, partition_id] = partition.leader_epoch


TestMetadataModel = MetadataModel.TestCase
TestMetadataModel.settings = settings(max_examples=40, stateful_step_count=30)
