"""The logs of this broker on disk: opened at start, made and deleted as the metadata says.

File work that can take long runs in worker threads; the table of partitions changes only in the event loop. The
metadata says which directory a partition belongs to; where it does not, the one with the fewest takes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import trio

from ottla.log_store.directory import LogDirectory, flush_directory
from ottla.log_store.log import Log
from ottla.log_store.naming import partition_directory
from ottla.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataDelta,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from ottla.server.partition import Partition
from ottla.server.partition_table import PartitionTable
from ottla.server.topic_configs import TopicConfigs
from ottla.wire.errors import KafkaError
from ottla.wire.uuids import Uuid

log = logging.getLogger("ottla.server")

NewPartition = tuple[TopicImage, int]


class LogCatalog:
    """Every log directory with its logs, and the partitions served from them."""

    def __init__(self, directories: Mapping[Uuid, LogDirectory], configs: TopicConfigs, node_id: int) -> None:
        self.directories = list(directories.values())
        self.configs = configs
        self.partitions = PartitionTable()
        self._by_id = dict(directories)
        self._node_id = node_id
        self._home: dict[Log, LogDirectory] = {}

    async def open(self, image: MetadataImage, now_ms: int) -> None:
        """Open every log that the metadata knows, make those it knows and the disk lacks, set strays aside."""
        self.configs.refresh(image)
        for directory in self.directories:
            await trio.to_thread.run_sync(self._open_directory, directory, image, now_ms)
        missing = []
        for topic in image.topics_by_name.values():
            for index, partition in topic.partitions.items():
                found = self._find(topic, index)
                if found is not None:
                    self._serve(topic, index, found, partition.leader_epoch)
                elif self._is_damaged(topic, index):
                    self.partitions.add_offline(topic.topic_id, topic.name, index)
                else:
                    missing.append((topic, index))
        await self._create(image, missing, now_ms)

    def _open_directory(self, directory: LogDirectory, image: MetadataImage, now_ms: int) -> None:
        for opened in directory.open_logs(lambda topic: self.configs.of(image, topic), now_ms=now_ms):
            topic = image.topics_by_name.get(opened.topic)
            if topic is None or opened.partition not in topic.partitions:
                log.warning("log of no known topic set aside partition=%s", opened.name)
                directory.set_stray(opened)
            elif opened.topic_id is not None and opened.topic_id != topic.topic_id:
                log.warning("log of a deleted topic of the same name set aside partition=%s", opened.name)
                directory.set_stray(opened)
            else:
                if opened.topic_id is None:
                    opened.assign_topic_id(topic.topic_id)
                _begin_epoch(opened, topic.partitions[opened.partition].leader_epoch)
                self._home[opened] = directory

    def _is_damaged(self, topic: TopicImage, index: int) -> bool:
        """Whether the log is there but could not be opened: it stays unserved, and its files untouched."""
        name = partition_directory(topic.name, index)
        return any(name in directory.failed for directory in self.directories)

    def _find(self, topic: TopicImage, index: int) -> Log | None:
        for directory in self.directories:
            found = directory.logs.get((topic.name, index))
            if found is not None:
                return found
        return None

    def _serve(self, topic: TopicImage, index: int, opened: Log, leader_epoch: int) -> None:
        # The only replica leads, and all it has is committed.
        opened.advance_high_watermark(opened.log_end_offset)
        self.partitions.add(topic.topic_id, Partition(topic.name, index, opened, leader_epoch))

    async def follow(self, image: MetadataImage, delta: MetadataDelta, now_ms: int) -> None:
        """Do on disk and in the table what a metadata change asks for."""
        if any(kind == BROKER_RESOURCE for kind, _ in delta.changed_configs):
            self.configs.refresh(image)
            self._update_configs(image, image.topics_by_name)
        else:
            self._update_configs(
                image, [name for kind, name in delta.changed_configs if kind == TOPIC_RESOURCE]
            )
        for topic in delta.deleted_topics:
            await self._delete(topic)
        await self._create(image, delta.new_partitions, now_ms)
        for change in delta.changed_partitions:
            partition = self.partitions.of_topic(change.topic.name).get(change.partition)
            if partition is not None:
                partition.leader_epoch = change.after.leader_epoch
                _begin_epoch(partition.log, partition.leader_epoch)

    def _update_configs(self, image: MetadataImage, topics: Iterable[str]) -> None:
        for name in topics:
            config = self.configs.of(image, name)
            for partition in self.partitions.of_topic(name).values():
                partition.log.update_config(config)

    async def _create(self, image: MetadataImage, wanted: Sequence[NewPartition], now_ms: int) -> None:
        if not wanted:
            return
        created = await trio.to_thread.run_sync(self._create_logs, image, list(wanted), now_ms)
        for (topic, index), made in zip(wanted, created, strict=True):
            if made is not None:
                self._serve(topic, index, made, topic.partitions[index].leader_epoch)
            else:
                self.partitions.add_offline(topic.topic_id, topic.name, index)

    def _create_logs(self, image: MetadataImage, wanted: list[NewPartition], now_ms: int) -> list[Log | None]:
        """Make the logs. The metadata has decided on them, so one that the disk refuses (None) stays unserved
        until a restart makes it, and the others are served."""
        created: list[Log | None] = []
        for topic, index in wanted:
            try:
                created.append(self._create_log(image, topic, index, now_ms))
            except OSError as error:
                log.error("log cannot be made partition=%s-%d error=%s", topic.name, index, error)
                created.append(None)
        for directory in {self._home[made] for made in created if made is not None}:
            flush_directory(directory)
        return created

    def _create_log(self, image: MetadataImage, topic: TopicImage, index: int, now_ms: int) -> Log:
        directory = self._directory_for(topic.partitions[index])
        made = directory.create_log(
            topic.name, index, topic.topic_id, self.configs.of(image, topic.name), now_ms=now_ms
        )
        _begin_epoch(made, topic.partitions[index].leader_epoch)
        self._home[made] = directory
        return made

    def _directory_for(self, partition: PartitionImage) -> LogDirectory:
        assigned = partition.directory_of(self._node_id)
        found = None if assigned is None else self._by_id.get(assigned)
        return found or min(self.directories, key=lambda each: len(each.logs))

    async def _delete(self, topic: TopicImage) -> None:
        removed = self.partitions.remove_topic(topic.topic_id, topic.name)
        for partition in removed:
            partition.wake()
        await trio.to_thread.run_sync(self._delete_logs, [partition.log for partition in removed])

    def _delete_logs(self, logs: list[Log]) -> None:
        for each in logs:
            try:
                self._home.pop(each).delete_log(each)
            except KafkaError as error:  # it is out of use all the same, and a stray at the next start
                log.error("log cannot be deleted partition=%s error=%s", each.name, error)

    def close(self, broker_epoch: int) -> None:
        """Flush and close every log and mark the directories clean; runs in a worker thread."""
        for directory in self.directories:
            directory.close(broker_epoch=broker_epoch)

    def release(self) -> None:
        """Let go of everything without writing, when the start has failed."""
        for directory in self.directories:
            directory.release()


def _begin_epoch(opened: Log, leader_epoch: int) -> None:
    """Note where the leader's epoch begins, so that clients can ask for its end before it has written."""
    if leader_epoch > opened.leader_epochs.latest_epoch:
        opened.leader_epochs.assign(leader_epoch, opened.log_end_offset)
