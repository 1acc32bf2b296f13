"""What the broker has for share groups: states, share partitions in use, sessions, and the link to group membership."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from ottla.config.resources import ResourceType
from ottla.group_coordinator.effects import (
    InitializeShareState,
    ShareMemberGone,
    ShareStateInitialized,
)
from ottla.group_coordinator.share.settings import ShareGroupSettings
from ottla.group_coordinator.share_state.shard import UNINITIALIZED, SharePartitionKey
from ottla.metadata.image import MetadataDelta
from ottla.server.share.partitions import SharePartitions
from ottla.server.share.sessions import SessionKey, ShareSessions
from ottla.server.share.states import ShareStates
from ottla.wire.errors import KafkaError
from ottla.wire.uuids import Uuid

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")


class ShareGroups:
    """The parts, and what happens between them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.settings = ShareGroupSettings(lambda: broker.config, self._overrides_of)
        self.states = ShareStates(broker)
        self.partitions = SharePartitions(broker, self.states, self.settings)
        self.sessions = ShareSessions(broker.config.get_int("group.share.max.share.sessions"))
        self._to_initialize, self._initialize_queue = trio.open_memory_channel[InitializeShareState](
            float("inf")
        )

    def _overrides_of(self, group_id: str) -> Mapping[str, str]:
        return self._broker.image.configs.get((ResourceType.GROUP, group_id), {})

    async def run(self) -> None:
        """Load states, initialise new ones and end locks until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.states.run)
            nursery.start_soon(self.partitions.run)
            async for effect in self._initialize_queue:
                await self._initialize(effect)

    def follow(self, delta: MetadataDelta) -> None:
        """The metadata changed."""
        deleted = {topic.topic_id for topic in delta.deleted_topics}
        if deleted:
            self.partitions.forget(lambda key: key.topic_id in deleted)
        self.states.follow(delta)

    # What membership asks for ------------------------------------------------------------------------------

    def happen(self, effect: InitializeShareState | ShareMemberGone) -> None:
        """Do what a shard of groups wants done; nobody waits for it."""
        if isinstance(effect, InitializeShareState):
            self._to_initialize.send_nowait(effect)
            return
        self.release_session((effect.group_id, effect.member_id))
        if effect.group_is_empty:
            self.partitions.forget(lambda key: key.group_id == effect.group_id)

    async def _initialize(self, effect: InitializeShareState) -> None:
        """Partitions that cannot be initialised now are asked for again by a later heartbeat."""
        done: dict[bytes, frozenset[int]] = {}
        for topic_id, indexes in effect.partitions.items():
            for index in sorted(indexes):
                key = SharePartitionKey(effect.group_id, topic_id, index)
                try:
                    await self.states.initialize(key, effect.state_epoch, UNINITIALIZED)
                except KafkaError as error:
                    log.warning("share group state not initialised key=%s error=%s", key, error)
                    continue
                done[topic_id] = done.get(topic_id, frozenset()) | {index}
        if done:
            self._broker.groups.happen(effect.group_id, ShareStateInitialized(effect.group_id, done))

    async def forget(self, group_id: str, partitions: Mapping[Uuid, frozenset[int]]) -> None:
        """Delete the states of share partitions. Raises KafkaError."""
        for topic_id, indexes in partitions.items():
            for index in sorted(indexes):
                key = SharePartitionKey(group_id, topic_id, index)
                if topic_id in self._broker.image.topics_by_id:
                    await self.states.delete(key)
        self.partitions.forget(lambda key: key.group_id == group_id and key.topic_id in partitions)

    # Sessions ----------------------------------------------------------------------------------------------

    def release_session(self, key: SessionKey) -> None:
        """A member, its connection or its session is gone: what it had is for others."""
        session = self.sessions.close(key)
        if session is not None:
            group_id, member_id = key
            for topic_id, index in session.partitions:
                self.partitions.release_member(SharePartitionKey(group_id, topic_id, index), member_id)
