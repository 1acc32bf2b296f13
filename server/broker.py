"""The broker that handlers see: configuration, metadata, partitions, sessions, and the one way to change metadata.

`decide` is that way: planning, appending to the metadata log, fsync and folding into the image happen under one
lock, and the logs of new partitions exist before anybody is told of them.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

import trio

from ottla.config.broker_config import BrokerConfig
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage
from ottla.metadata.store import MetadataStore
from ottla.server.fetch_sessions import FetchSessionCache
from ottla.server.limits import Limits
from ottla.server.log_catalog import LogCatalog
from ottla.server.partition_table import PartitionTable
from ottla.server.producer_ids import ProducerIds
from ottla.server.registry import Registry, load_registry

log = logging.getLogger("ottla.server")
Result = TypeVar("Result")


class Broker:
    """One node: what it knows and what it may change."""

    def __init__(
        self, config: BrokerConfig, store: MetadataStore, logs: LogCatalog, rng: random.Random
    ) -> None:
        self.config = config
        self.limits = Limits.from_config(config)
        self.registry: Registry = load_registry()
        self.store = store
        self.logs = logs
        self.partitions: PartitionTable = logs.partitions
        self.fetch_sessions = FetchSessionCache(
            config.get_int("max.incremental.fetch.session.cache.slots"),
            config.get_int("min.incremental.fetch.session.eviction.ms"),
            lambda: rng.randrange(1, 2**31 - 1),
        )
        self.producer_ids = ProducerIds(self)
        self.stopping = False
        self._rng = rng
        self._deciding = trio.Lock()

    @property
    def image(self) -> MetadataImage:
        return self.store.image

    @property
    def node_id(self) -> int:
        return self.store.node_id

    @property
    def cluster_id(self) -> str:
        return self.store.cluster_id

    def now_ms(self) -> int:
        """Wall-clock time, as records carry it."""
        return time.time_ns() // 1_000_000

    def random_uuid(self) -> bytes:
        return self._rng.randbytes(16)

    async def decide(self, planner: Callable[[MetadataImage], Plan[Result]]) -> Result:
        """Plan a metadata change on the current image and make it durable and visible; returns its results."""
        async with self._deciding:
            plan = planner(self.image)
            if plan.records:
                self.store.append(plan.records, self.now_ms())
                await trio.to_thread.run_sync(self.store.flush)
                delta = self.store.apply_appended()
                await self.logs.follow(delta)
            return plan.results
