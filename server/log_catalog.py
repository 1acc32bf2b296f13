"""The logs of this broker on disk: opened at start, made and deleted as the metadata says.

File work that can take long runs in worker threads; the table of partitions changes only in the event loop. The
metadata says which directory a partition belongs to; where it does not, the one with the fewest takes it. A partition
whose directory has failed or is missing, or whose log is damaged, is offline; no empty log takes its place.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

import trio

from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory, flush_directory
from ottla.log_store.durability import OUT_OF_DESCRIPTORS
from ottla.log_store.log import Log
from ottla.log_store.naming import partition_directory
from ottla.metadata.controller.broker_registration import PartitionKey
from ottla.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataDelta,
    MetadataImage,
    PartitionChange,
    PartitionImage,
    TopicImage,
)
from ottla.server.garbage import set_aside
from ottla.server.partition import Partition
from ottla.server.partition_table import PartitionTable
from ottla.server.topic_configs import TopicConfigs
from ottla.server.turns import map_in_turns
from ottla.wire.errors import KafkaError
from ottla.wire.uuids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Uuid

log = logging.getLogger("ottla.server")

NewPartition = tuple[TopicImage, int]

_MANY_PARTITIONS = 200

# Why a log may not be made although its disk is well: something is in the way, or descriptors are short.
_NOT_THE_DISK = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, *OUT_OF_DESCRIPTORS)


class StorageFailed(Exception):
    """The disk leaves nothing to go on with: the process ends with this sentence."""


class LogCatalog:
    """Every log directory with its logs, and the partitions served from them."""

    def __init__(self, directories: Mapping[Uuid, LogDirectory], configs: TopicConfigs, node_id: int) -> None:
        self.configs = configs
        self.partitions = PartitionTable()
        self._online = dict(directories)
        self._node_id = node_id
        self._home: dict[Log, LogDirectory] = {}
        self._new_partitions = 0  # since the collector was last kept from what there is

    @property
    def directories(self) -> list[LogDirectory]:
        """The directories that have not failed."""
        return [directory for directory in self._online.values() if directory.failure is None]

    @property
    def online_ids(self) -> list[Uuid]:
        return [key for key, directory in self._online.items() if directory.failure is None]

    async def open(self, image: MetadataImage, now_ms: int) -> dict[PartitionKey, Uuid]:
        """Open every log that the metadata knows, make those it knows and the disk lacks, set strays aside.
        Returns which partitions can be served, and in which directory their logs are."""
        self.configs.refresh(image)
        threads = self.configs.broker.get_int("num.recovery.threads.per.data.dir")
        async with trio.open_nursery() as nursery:
            for directory in self.directories:
                nursery.start_soon(
                    trio.to_thread.run_sync, self._open_directory, directory, image, threads, now_ms
                )
        missing = [
            (topic, index)
            for topic in image.topics_by_name.values()
            for index, partition in topic.partitions.items()
            if self._find(topic, index) is None
            and not self._is_damaged(topic, index)
            and self._directory_for(partition) is not None
        ]
        if missing:
            await trio.to_thread.run_sync(self._create_logs, image, missing, now_ms)
        ids = {directory: key for key, directory in self._online.items() if directory.failure is None}
        return {
            (topic.topic_id, index): ids[self._home[found]]
            for topic in image.topics_by_name.values()
            for index in topic.partitions
            if (found := self._find(topic, index)) is not None and self._home[found] in ids
        }

    def serve(self, image: MetadataImage) -> None:
        """Let clients have what was opened, under the leader epochs of this start."""
        for topic in image.topics_by_name.values():
            for index, partition in topic.partitions.items():
                self._serve(topic, index, self._find(topic, index), partition.leader_epoch)

    def _open_directory(
        self, directory: LogDirectory, image: MetadataImage, threads: int, now_ms: int
    ) -> None:
        try:
            found = directory.open_logs(
                cache(partial(self.configs.of, image)), now_ms=now_ms, threads=threads
            )
            for opened in found:
                self._take_in(opened, directory, image)
        except OSError as error:
            directory.fail(error)
        except KafkaError as error:  # the directory has failed
            log.debug("logs not opened path=%s error=%s", directory.path, error)

    def _take_in(self, opened: Log, directory: LogDirectory, image: MetadataImage) -> None:
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
            self._home[opened] = directory

    def take_offline(self, directory: LogDirectory) -> None:
        """Serve nothing any more from a directory that has failed."""
        for each, home in list(self._home.items()):
            if home is directory:
                del self._home[each]
                if each.topic_id is not None:
                    partition = self.partitions.set_offline(each.topic_id, each.topic, each.partition)
                    if partition is not None:
                        partition.wake()
                each.release()

    def _is_damaged(self, topic: TopicImage, index: int) -> bool:
        """Whether the log is there but could not be opened: it stays unserved, and its files untouched."""
        name = partition_directory(topic.name, index)
        return any(name in directory.failed for directory in self._online.values())

    def _find(self, topic: TopicImage, index: int) -> Log | None:
        for directory in self._online.values():
            found = directory.logs.get((topic.name, index))
            if found is not None and found in self._home:
                return found
        return None

    def _serve(self, topic: TopicImage, index: int, opened: Log | None, leader_epoch: int) -> None:
        if opened is None or opened.failure is not None:
            self.partitions.set_offline(topic.topic_id, topic.name, index)
            return
        _begin_epoch(opened, leader_epoch)
        # The only replica leads, and all it has is committed.
        opened.advance_high_watermark(opened.log_end_offset)
        self.partitions.add(topic.topic_id, Partition(topic.name, index, opened, leader_epoch))

    async def follow(self, image: MetadataImage, delta: MetadataDelta, now_ms: int) -> None:
        """Do on disk and in the table what a metadata change asks for."""
        if any(kind == BROKER_RESOURCE for kind, _ in delta.changed_configs):
            self.configs.refresh(image)
            changed = list(image.topics_by_name)
        else:
            changed = [name for kind, name in delta.changed_configs if kind == TOPIC_RESOURCE]
        if changed:
            await map_in_turns(_go_by, self._with_configs(image, changed))
        if delta.deleted_topics:
            await self._delete(delta.deleted_topics)
        await self._create(image, delta.new_partitions, now_ms)
        if delta.changed_partitions:
            await map_in_turns(self._change, delta.changed_partitions)

    def _with_configs(
        self, image: MetadataImage, topics: Iterable[str]
    ) -> Iterator[tuple[Partition, TopicConfig]]:
        """The partitions of topics, and the configs they are to go by."""
        for name in topics:
            config = self.configs.of(image, name)
            for partition in list(self.partitions.of_topic(name).values()):
                yield partition, config

    def _change(self, change: PartitionChange) -> None:
        partition = self.partitions.of_topic(change.topic.name).get(change.partition)
        if partition is not None:
            partition.leader_epoch = change.after.leader_epoch
            _begin_epoch(partition.log, partition.leader_epoch)

    async def _create(self, image: MetadataImage, wanted: Sequence[NewPartition], now_ms: int) -> None:
        if not wanted:
            return
        created = await trio.to_thread.run_sync(self._create_logs, image, list(wanted), now_ms)

        def serve(each: tuple[NewPartition, Log | None]) -> None:
            (topic, index), made = each
            self._serve(topic, index, made, topic.partitions[index].leader_epoch)

        await map_in_turns(serve, zip(wanted, created, strict=True))
        self._new_partitions += len(wanted)
        if self._new_partitions >= _MANY_PARTITIONS:
            self._new_partitions = 0
            set_aside()

    def _create_logs(
        self, image: MetadataImage, wanted: Iterable[NewPartition], now_ms: int
    ) -> list[Log | None]:
        """Make logs; None for one whose directory has failed."""
        created: list[Log | None] = []
        used = set()
        config_of = cache(partial(self.configs.of, image))  # one for all partitions of a topic
        for topic, index in wanted:
            directory = self._directory_for(topic.partitions[index])
            made = None
            if directory is not None:
                made = self._create_log(directory, config_of(topic.name), topic, index, now_ms)
                used.add(directory)
            created.append(made)
        for directory in used:
            flush_directory(directory)
        return created

    def _create_log(
        self, directory: LogDirectory, config: TopicConfig, topic: TopicImage, index: int, now_ms: int
    ) -> Log | None:
        epoch = topic.partitions[index].leader_epoch
        try:
            made = directory.create_log(
                topic.name, index, topic.topic_id, config, now_ms=now_ms, leader_epoch=epoch
            )
        except OSError as error:
            # Decided on in the metadata already: it is offline until a restart makes it.
            log.error("log cannot be made partition=%s-%d error=%s", topic.name, index, error)
            if error.errno not in _NOT_THE_DISK:
                directory.fail(error)
            return None
        self._home[made] = directory
        return made

    def _directory_for(self, partition: PartitionImage) -> LogDirectory | None:
        """Where the log of a partition belongs; None if that directory is not there any more."""
        assigned = partition.directory_of(self._node_id)
        if assigned is not None and assigned not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            found = self._online.get(assigned)
            return found if found is not None and found.failure is None else None
        return min(self.directories, key=lambda each: len(each.logs), default=None)

    async def _delete(self, topics: Iterable[TopicImage]) -> None:
        removed: list[Partition] = []

        def remove(topic: TopicImage) -> None:
            removed.extend(self.partitions.remove_topic(topic.topic_id, topic.name))

        await map_in_turns(remove, topics)
        await map_in_turns(Partition.wake, removed)
        await trio.to_thread.run_sync(self._delete_logs, removed)

    def write_cleaner_offsets(self, cleaned: Log) -> None:
        """Write down how far compaction came in the directory of a log, unless that was deleted meanwhile."""
        directory = self._home.get(cleaned)
        if directory is not None:
            directory.write_cleaner_offsets()

    def _delete_logs(self, removed: list[Partition]) -> None:
        """Delete the logs of partitions, and let go of them here: to close the files of very many takes time, too."""
        delay_ms = self.configs.broker.get_int("log.segment.delete.delay.ms")
        touched = set()
        while removed:
            each = removed.pop().log
            directory = self._home.pop(each, None)
            if directory is not None:
                try:
                    directory.delete_log(each, delay_ms=delay_ms)
                    touched.add(directory)
                except KafkaError as error:  # it is out of use all the same, and a stray at the next start
                    log.error("log cannot be deleted partition=%s error=%s", each.name, error)
        for directory in touched:
            directory.write_checkpoints()
            flush_directory(directory)

    def close(self, broker_epoch: int) -> None:
        """Flush and close every log and mark the directories clean; runs in a worker thread."""
        for directory in self._online.values():
            directory.close(broker_epoch=broker_epoch)

    def release(self) -> None:
        """Let go of everything without writing, when the start has failed."""
        for directory in self._online.values():
            directory.release()


def _go_by(each: tuple[Partition, TopicConfig]) -> None:
    partition, config = each
    partition.log.update_config(config)


def _begin_epoch(opened: Log, leader_epoch: int) -> None:
    """Note where the leader's epoch begins, so that clients can ask for its end before it has written."""
    if leader_epoch > opened.leader_epochs.latest_epoch:
        opened.leader_epochs.begin(leader_epoch, opened.log_end_offset)
