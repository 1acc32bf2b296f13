"""A shard with a clock, a log and timers: executes effects the way the server does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.config.broker_config import BrokerConfig
from ottla.group_coordinator.consumer.configured import ConfiguredConsumerGroups
from ottla.group_coordinator.effects import (
    Append,
    CancelTimer,
    Effect,
    Event,
    GroupRequest,
    InitializeShareState,
    Reply,
    SetTimer,
    ShareMemberGone,
    TimerFired,
    TimerKey,
)
from ottla.group_coordinator.offsets import NO_PRODUCER_ID
from ottla.group_coordinator.records import CoordinatorRecord, decode_record, encode_key, encode_value
from ottla.group_coordinator.settings import GroupSettings
from ottla.group_coordinator.shard import GroupShard
from ottla.group_coordinator.share.settings import ShareGroupSettings
from ottla.group_coordinator.topics import Topic
from ottla.wire.schema import Message, decode, encode
from ottla.wire.uuids import Uuid


class FakeTopics:
    """Topics that a test sets up."""

    def __init__(self, *topics: Topic) -> None:
        self.topics = {topic.name: topic for topic in topics}
        self.version = 0

    def by_name(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def by_id(self, topic_id: Uuid) -> Topic | None:
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def names(self) -> Iterable[str]:
        return self.topics.keys()


class Driver:
    """`now_ms` is the clock; `log` what was appended, as bytes; `answers` what each waiter got."""

    def __init__(self, topics: FakeTopics | None = None, **settings: str) -> None:
        self.topics = topics or FakeTopics(Topic("t", b"t" * 16, 4), Topic("u", b"u" * 16, 4))
        self.config = {key.replace("_", "."): value for key, value in settings.items()}
        self.overrides: dict[str, dict[str, str]] = {}
        self.now_ms = 1_000_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.producers: dict[int, int] = {}  # of the records that belong to transactions, by their offsets
        self.markers: dict[int, tuple[int, bool]] = {}
        self.answers: dict[int, Any] = {}
        self.timers: dict[TimerKey, int] = {}
        self.appends: list[tuple[CoordinatorRecord, ...]] = []
        self.share_effects: list[InitializeShareState | ShareMemberGone] = []
        self._next_waiter = 0
        self._next_id = 0
        self.shard = self._new_shard()
        self._execute(self.shard.loaded(self.now_ms))

    def _new_shard(self) -> GroupShard:
        config = BrokerConfig.load({"node.id": "1", **self.config})
        settings = GroupSettings.from_config(config)
        consumer_settings = ConfiguredConsumerGroups(lambda: config, self._overrides_of)
        share_settings = ShareGroupSettings(lambda: config, self._overrides_of)
        return GroupShard(lambda: settings, consumer_settings, share_settings, self.topics, self._new_id)

    def _overrides_of(self, group_id: str) -> dict[str, str]:
        return self.overrides.get(group_id, {})

    def _new_id(self) -> str:
        self._next_id += 1
        return f"id{self._next_id}"

    # Doing -------------------------------------------------------------------------------------------------

    def send(self, message: Any, api_version: int | None = None, client_id: str = "c") -> int:
        """Send a request as its bytes would carry it; the number of its waiter comes back."""
        version = type(message).MAX_VERSION if api_version is None else api_version
        self._next_waiter += 1
        carried: Any = decode(type(message), version, encode(message, version))
        event = GroupRequest(self._next_waiter, carried, version, client_id, "/127.0.0.1")
        self.happen(event)
        return self._next_waiter

    def ask(self, message: Message, api_version: int | None = None, client_id: str = "c") -> Any:
        """Send a request that is answered at once, and return the answer."""
        return self.answers[self.send(message, api_version, client_id)]

    def happen(self, event: Event) -> None:
        self._execute(self.shard.handle(event, self.now_ms))

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; timers fire in their order at their time."""
        end_ms = self.now_ms + duration_ms
        while self.timers:
            key = min(self.timers, key=self.timers.__getitem__)
            if self.timers[key] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.happen(TimerFired(key))
        self.now_ms = end_ms

    def wait_for(self, *waiters: int) -> None:
        """Let time pass until these waiters have their answers, and not a moment more."""
        while not self.answers.keys() >= set(waiters):
            self.pass_ms(max(0, min(self.timers.values()) - self.now_ms))

    def restart(self) -> None:
        """Forget everything but the log, and load it."""
        self.timers.clear()
        self.shard = self.replayed()
        self._execute(self.shard.loaded(self.now_ms))

    def replayed(self) -> GroupShard:
        """Another shard made from the log."""
        shard = self._new_shard()
        for offset, (key, value) in enumerate(self.log):
            if offset in self.markers:
                producer_id, committed = self.markers[offset]
                shard.end_transaction(producer_id, committed=committed)
            else:
                producer_id = self.producers.get(offset, NO_PRODUCER_ID)
                shard.apply(decode_record(key, value), self.now_ms, producer_id, offset)
        return shard

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Write the marker of a transaction."""
        self.markers[len(self.log)] = (producer_id, committed)
        self.log.append((b"", None))
        self.shard.end_transaction(producer_id, committed=committed)

    def _execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self.appends.append(effect.records)
                for record in effect.records:
                    offset = len(self.log)
                    self.log.append((encode_key(record.key), encode_value(record.value)))
                    if effect.producer_id != NO_PRODUCER_ID:
                        self.producers[offset] = effect.producer_id
                    self.shard.apply(record, self.now_ms, effect.producer_id, offset)
            elif isinstance(effect, Reply):
                assert effect.waiter not in self.answers, f"waiter {effect.waiter} was answered twice"
                self.answers[effect.waiter] = effect.response
            elif isinstance(effect, SetTimer):
                self.timers[effect.key] = effect.at_ms
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
            else:
                self.share_effects.append(effect)
