"""The broker that handlers see: configuration, metadata, partitions, sessions, and the one way to change metadata.

`decide` is that way: planning, appending to the metadata log, fsync and folding into the image happen under one
lock, and the logs of new partitions exist before anybody is told of them.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import trio

from ottla.config.broker_config import BrokerConfig
from ottla.config.listeners import Endpoint
from ottla.log_store.directory import LogDirectory
from ottla.metadata.controller.broker_registration import (
    PartitionKey,
    broker_endpoints,
    plan_broker_departure,
    plan_broker_registration,
)
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage
from ottla.metadata.store import MetadataSettings, MetadataStore
from ottla.server.fetch_sessions import FetchSessionCache
from ottla.server.late_parts import LateParts
from ottla.server.limits import Limits
from ottla.server.log_catalog import LogCatalog, StorageFailed
from ottla.server.maintenance import Maintenance
from ottla.server.own_threads import run_in_thread
from ottla.server.partition_table import PartitionTable
from ottla.server.producer_ids import ProducerIds
from ottla.server.registry import Encoded, Registry, load_registry
from ottla.server.storage import Storage
from ottla.server.topic_configs import TopicConfigs
from ottla.wire.dataclass import replace
from ottla.wire.uuids import Uuid

if TYPE_CHECKING:
    from ottla.server.groups.coordinator import GroupCoordinator
    from ottla.server.log_cleaner import LogCleaner
    from ottla.server.share.coordinator import ShareGroups
    from ottla.server.transactions.coordinator import TransactionCoordinator

log = logging.getLogger("ottla.server")
Results = TypeVar("Results")

_FETCH_SESSION_EVICTION_MS = 120_000
_UUIDS_AT_ONCE = 64


class Broker:
    """One node: what it knows and what it may change."""

    def __init__(
        self, config: BrokerConfig, store: MetadataStore, logs: LogCatalog, rng: random.Random
    ) -> None:
        self.static_config = config
        self.limits = Limits.from_config(config)
        self.registry: Registry = load_registry()
        # What ApiVersions answers, by version, and the last metadata offset and KRaft version that it tells of.
        self.api_versions: dict[int, tuple[tuple[int, int], Encoded]] = {}
        self.store = store
        self.logs = logs
        self.fetch_sessions = FetchSessionCache(
            config.get_int("max.incremental.fetch.session.cache.slots"),
            _FETCH_SESSION_EVICTION_MS,
            lambda: rng.randrange(1, 2**31 - 1),
        )
        self.producer_ids = ProducerIds(self)
        self.maintenance = Maintenance(self)
        self.late = LateParts(self)
        self.storage = Storage(self)
        self.stopping = False
        self.settling = False  # the image tells of partitions whose logs are being made
        self._rng = rng
        self._uuids: list[Uuid] = []  # that were drawn and not used yet
        self._deciding = trio.Lock()

    @classmethod
    async def open(cls, config: BrokerConfig, endpoints: Sequence[Endpoint], rng: random.Random) -> Self:
        """Take the directories, replay the metadata, open the logs and register. Raises what forbids it."""
        directories = _lock_directories(config)
        store = None
        try:
            paths = [Path(each.path) for each in directories]
            store = await trio.to_thread.run_sync(_open_store, config, paths, rng)
            by_id = {store.directory_ids[Path(each.path)]: each for each in directories}
            logs = LogCatalog(by_id, TopicConfigs(config, store.node_id), store.node_id)
            broker = cls(config, store, logs, rng)
            broker.storage.watch(directories)
            homes = await logs.open(store.image, broker.now_ms())
            broker.storage.check()
            await broker._register(endpoints, homes)
            logs.serve(store.image)
        except BaseException:
            for directory in directories:
                directory.release()
            if store is not None:
                store.release()
            raise
        return broker

    # Facts -------------------------------------------------------------------------------------------------

    @property
    def config(self) -> BrokerConfig:
        """The settings in force: dynamic ones over static ones."""
        return self.logs.configs.broker

    @property
    def image(self) -> MetadataImage:
        return self.store.image

    @property
    def partitions(self) -> PartitionTable:
        return self.logs.partitions

    @property
    def groups(self) -> GroupCoordinator:
        return self.late.groups

    @property
    def share(self) -> ShareGroups:
        return self.late.share

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.late.transactions

    @property
    def cleaner(self) -> LogCleaner:
        return self.late.cleaner

    @property
    def node_id(self) -> int:
        return self.store.node_id

    @property
    def cluster_id(self) -> str:
        return self.store.cluster_id

    @property
    def log_directories(self) -> list[str]:
        """Where the data is."""
        return [directory.path for directory in self.logs.directories]

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration."""
        return self.image.brokers[self.node_id].broker_epoch

    def now_ms(self) -> int:
        """Wall-clock time, as records carry it."""
        return time.time_ns() // 1_000_000

    def random_uuid(self) -> Uuid:
        """An id that nobody has.

        A worker thread that asks the system for each of very many would give the interpreter's lock away each time, for
        a moment that is too short for the loop to take it, and yet begin anew the time after which the loop demands it:
        that has been seen to keep it for eighty milliseconds."""
        if not self._uuids:
            drawn = self._rng.randbytes(16 * _UUIDS_AT_ONCE)
            self._uuids = [drawn[start : start + 16] for start in range(0, len(drawn), 16)]
        return self._uuids.pop()

    # Changes -----------------------------------------------------------------------------------------------

    async def decide(self, planner: Callable[[MetadataImage], Plan[Results]]) -> Results:
        """Plan a metadata change on the current image, make it durable and visible, and return its results.

        A plan may be about very many things, so it is made where it is written, in a worker thread: nothing else
        changes the image meanwhile."""
        async with self._deciding:
            # A client that hangs up must not leave a change half made.
            with trio.CancelScope(shield=True):
                now_ms = self.now_ms()
                with self.storage.metadata_must_not_fail():
                    plan: Plan[Results] = await run_in_thread(self._plan_and_write, planner, now_ms)
                if plan.records:
                    delta = self.store.apply_appended()
                    self.settling = True
                    try:
                        await self.logs.follow(self.image, delta, now_ms)
                        await self.late.follow(delta)
                    finally:
                        self.settling = False
                    if self.partitions.offline:
                        self.storage.look_again()
            return plan.results

    def _plan_and_write(
        self, planner: Callable[[MetadataImage], Plan[Results]], now_ms: int
    ) -> Plan[Results]:
        plan = planner(self.image)
        if plan.records:
            self.store.write(plan.records, now_ms)
        return plan

    async def wait_settled(self) -> None:
        """Wait until what the image tells is also served: new topics have their logs."""
        while self.settling:
            async with self._deciding:
                pass

    async def write_metadata_snapshot_if_due(self) -> None:
        """Write the image beside its log when the log has grown enough."""
        async with self._deciding:
            if self.store.snapshot_due:
                with self.storage.metadata_must_not_fail():
                    await trio.to_thread.run_sync(self.store.write_snapshot, self.now_ms())

    # Life --------------------------------------------------------------------------------------------------

    async def run_background(self) -> None:
        """Chores, compaction, timers of groups and transactions, until cancelled. StorageFailed when there is no disk
        left."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.maintenance.run)
            nursery.start_soon(self.late.run)
            nursery.start_soon(self.storage.run)

    def begin_stop(self) -> None:
        """Let whoever waits be answered with what there is."""
        self.stopping = True
        self.late.begin_stop()
        for partition in self.partitions:
            partition.wake()

    async def close(self) -> None:
        """Write everything down and mark the directories clean."""
        await trio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        self.logs.close(self.broker_epoch)
        if self.storage.metadata_failed:
            self.store.release()
            return
        departure = plan_broker_departure(self.image, node_id=self.node_id)
        try:
            if departure.records:
                self.store.commit(departure.records, self.now_ms())
            self.store.close(self.now_ms())
        except OSError as error:  # what was decided is durable already; the next start mends the rest
            log.error("metadata cannot be closed error=%s", error)

    async def _register(self, endpoints: Sequence[Endpoint], homes: Mapping[PartitionKey, Uuid]) -> None:
        """Become a new incarnation of this broker in the metadata, leading what it may."""
        advertised = _advertised(self.static_config.advertised_listeners(), endpoints)
        plan = plan_broker_registration(
            self.image,
            node_id=self.node_id,
            next_offset=self.store.next_offset,
            incarnation_id=self.random_uuid(),
            end_points=broker_endpoints(advertised),
            rack=self.static_config.rack(),
            log_dirs=self.logs.online_ids,
            homes=homes,
        )
        await trio.to_thread.run_sync(self.store.commit, plan.records, self.now_ms())


def _lock_directories(config: BrokerConfig) -> list[LogDirectory]:
    """Take every log directory. One that cannot be used is left out, as in Kafka, unless it is the only one or
    holds the metadata."""
    expiration_ms = config.get_int("producer.id.expiration.ms")
    metadata_directory = _absolute(config.metadata_log_dir())
    locked: list[LogDirectory] = []
    try:
        for path in config.log_dirs():
            try:
                locked.append(LogDirectory(path, producer_id_expiration_ms=expiration_ms))
            except OSError as error:
                if len(config.log_dirs()) == 1 or _absolute(path) == metadata_directory:
                    raise
                log.error("log directory is offline path=%s error=%s", path, error)
        if not locked:
            raise StorageFailed(f"None of the log directories {', '.join(config.log_dirs())} can be used.")
    except BaseException:
        for directory in locked:
            directory.release()
        raise
    return locked


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(path))  # as LogDirectory does it: the two are matched by their paths


def _open_store(config: BrokerConfig, directories: list[Path], rng: random.Random) -> MetadataStore:
    return MetadataStore.open(
        directories,
        now_ms=time.time_ns() // 1_000_000,
        new_uuid=lambda: rng.randbytes(16),
        node_id=config.node_id(),
        metadata_directory=_absolute(config.metadata_log_dir()),
        settings=MetadataSettings(
            max_bytes_between_snapshots=config.get_int("metadata.log.max.record.bytes.between.snapshots"),
            segment_bytes=config.get_int("metadata.log.segment.bytes"),
            min_insync_replicas=config.get_int("min.insync.replicas"),
        ),
    )


def _advertised(wanted: Sequence[Endpoint], bound: Sequence[Endpoint]) -> list[Endpoint]:
    """What clients are told: a port of 0 becomes the bound one, and every interface becomes this host's name."""
    ports = {endpoint.name: endpoint.port for endpoint in bound}
    return [
        replace(
            endpoint,
            host=endpoint.host or socket.getfqdn(),
            port=endpoint.port or ports.get(endpoint.name, 0),
        )
        for endpoint in wanted
    ]
