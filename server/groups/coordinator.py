"""The group coordinator: which shard a group belongs to, loading shards, and handing them their events.

This broker coordinates the groups of every partition of `__consumer_offsets` that it leads. Until a partition has been
replayed its groups are COORDINATOR_LOAD_IN_PROGRESS, which clients wait out; a new partition is ready at once.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import trio

from ottla.config.resources import ResourceType
from ottla.group_coordinator.consumer.configured import ConfiguredConsumerGroups
from ottla.group_coordinator.effects import (
    Event,
    GroupRequest,
    InitializeShareState,
    OffsetsGone,
    ShareMemberGone,
    ShareStateInitialized,
    ShareStateRemoved,
    TimerFired,
    TopicsChanged,
)
from ottla.group_coordinator.settings import GroupSettings
from ottla.group_coordinator.shard import GroupShard
from ottla.group_coordinator.share.settings import ShareGroupSettings
from ottla.log_store.verification import Verification
from ottla.metadata.image import MetadataDelta
from ottla.server.context import RequestContext
from ottla.server.groups.loading import ShardLoader
from ottla.server.groups.runner import RunnerTimer, ShardRunner, TransactionRefused
from ottla.server.groups.timers import Timers
from ottla.server.groups.topics import ImageTopics
from ottla.server.groups.wakeups import Wakeups
from ottla.server.internal_topics import OFFSETS_TOPIC, coordinator_partition
from ottla.server.partition import Partition
from ottla.server.topic_pieces import PIECE_PARTITIONS
from ottla.server.turns import Turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ottla.wire.schema import Message

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 1, 60
_WITHOUT_GROUP_ID = (OffsetCommitRequest, DeleteGroupsRequest)
"""Requests that may be to the group whose id is empty, which old consumers without a group commit to."""


class GroupCoordinator:
    """The shards of this broker by partition."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._runners: dict[int, ShardRunner] = {}
        self._loading: set[int] = set()
        self._failed_loads: dict[int, int] = {}
        """How often in a row a partition could not be loaded."""
        self._timers: Timers[RunnerTimer] = Timers(self._timer_fired)
        self._wakeups = Wakeups()
        self._waiters = itertools.count(1)
        self._topics = ImageTopics(lambda: broker.image)
        self._settings = GroupSettings.from_config(broker.config)
        self._settings_of = broker.config
        self._consumer_settings = ConfiguredConsumerGroups(lambda: broker.config, self._overrides_of)
        self._to_load, self._load_queue = trio.open_memory_channel[int](float("inf"))

    # Asking ------------------------------------------------------------------------------------------------

    async def ask(self, context: RequestContext, group_id: str, message: Message) -> Any:
        """The answer of the group's shard. Raises KafkaError when there is none to ask, or it ends."""
        runner, waiter, answer = self._hand_over(context, group_id, message)
        if answer is None or runner.flush_due:
            return await self._wait(runner, waiter, answer)
        return answer

    def answer(
        self,
        context: RequestContext,
        group_id: str,
        message: Message,
        refuse: Callable[[KafkaError], Message],
    ) -> Any:
        """What a handler answers whose requests no group lets wait: the shard's answer, or what `refuse` makes of an
        error. It is a coroutine only while the log has to be flushed first."""
        try:
            runner, waiter, answer = self._hand_over(context, group_id, message)
        except KafkaError as error:
            return refuse(error)
        return self._answer_later(runner, waiter, answer, refuse) if runner.flush_due else answer

    def _hand_over(
        self, context: RequestContext, group_id: str, message: Message
    ) -> tuple[ShardRunner, int, Any]:
        if not group_id and not isinstance(message, _WITHOUT_GROUP_ID):
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        runner = self._runner_of(group_id)
        waiter = next(self._waiters)
        request = GroupRequest(
            waiter, message, context.api_version, context.client_id or "", f"/{context.client_host}"
        )
        try:
            return runner, waiter, runner.ask(request, self._broker.now_ms())
        except KafkaError as error:
            self._give_up(runner, error)
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
        except Exception:
            self._give_up(runner, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            raise

    async def _wait(self, runner: ShardRunner, waiter: int, answer: Any) -> Any:
        try:
            if answer is None:
                answer = await runner.wait_for_answer(waiter)
            if runner.flush_due:
                await runner.flush()
        except KafkaError as error:
            self._give_up(runner, error)
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
        return answer

    async def _answer_later(
        self, runner: ShardRunner, waiter: int, answer: Any, refuse: Callable[[KafkaError], Message]
    ) -> Any:
        try:
            return await self._wait(runner, waiter, answer)
        except KafkaError as error:
            return refuse(error)

    def commit_in_transaction(
        self, context: RequestContext, request: TxnOffsetCommitRequest, verification: Verification | None
    ) -> TxnOffsetCommitResponse | Coroutine[Any, Any, TxnOffsetCommitResponse]:
        """The answer of the group's shard to offsets whose transaction was verified, or a coroutine of it while the log
        has to be flushed first. Raises KafkaError when there is none to ask, it ends, or the transaction has ended
        meanwhile."""
        runner = self._runner_of(request.group_id)
        waiter = next(self._waiters)
        event = GroupRequest(
            waiter, request, context.api_version, context.client_id or "", f"/{context.client_host}"
        )
        producer = (request.producer_id, request.producer_epoch)
        try:
            answer = runner.ask_in_transaction(event, producer, verification, self._broker.now_ms())
        except TransactionRefused:
            raise
        except KafkaError as error:
            self._give_up(runner, error)
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
        except Exception:
            self._give_up(runner, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            raise
        if runner.flush_due:
            return self._wait(runner, waiter, answer)
        response: TxnOffsetCommitResponse = answer
        return response

    def partition_of(self, group_id: str) -> int:
        """The partition of the groups' topic that a group belongs to. Raises KafkaError when its shard is not ready."""
        return self._runner_of(group_id).partition.index

    def end_transaction(
        self,
        partition: int,
        batch: memoryview,
        producer_id: int,
        *,
        committed: bool,
        transaction_version: int,
    ) -> bool:
        """Append the marker of a transaction to a partition of the groups' topic, and settle the offsets that were
        committed in it; whether a flush is due. Raises KafkaError when the log refuses it or the shard is not ready."""
        runner = self._ready_runner(partition)
        try:
            return runner.end_transaction(
                batch,
                self._broker.now_ms(),
                producer_id,
                committed=committed,
                transaction_version=transaction_version,
            )
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self._give_up(runner, error)
            raise

    def shard_of(self, group_id: str) -> GroupShard:
        """For looking at a group. Raises KafkaError when its shard is not here or not ready."""
        return self._runner_of(group_id).shard

    def shards(self) -> list[GroupShard]:
        """Every shard. Raises KafkaError while one of them is being loaded."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [runner.shard for runner in self._runners.values()]

    def _runner_of(self, group_id: str) -> ShardRunner:
        if self._broker.stopping:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topic = self._broker.image.topics_by_name.get(OFFSETS_TOPIC)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self._ready_runner(coordinator_partition(group_id, len(topic.partitions)))

    def _ready_runner(self, index: int) -> ShardRunner:
        runner = self._runners.get(index)
        if runner is not None:
            return runner
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # Loading -----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take over the partitions that are there."""
        for partition in self._broker.partitions.of_topic(OFFSETS_TOPIC).values():
            self._take_over(partition)

    async def run(self) -> None:
        """Load what is to be loaded and fire timers until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._timers.run)
            nursery.start_soon(self._wakeups.run)
            async for index in self._load_queue:
                partition = self._broker.partitions.of_topic(OFFSETS_TOPIC).get(index)
                is_loaded = partition is None or await self._load(partition)
                self._loading.discard(index)
                if is_loaded:
                    self._failed_loads.pop(index, None)
                else:
                    nursery.start_soon(self._load_again, index)

    def _take_over(self, partition: Partition) -> None:
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._start(partition, self._new_shard())
        else:
            self._load_soon(partition.index)

    def _load_soon(self, index: int) -> None:
        self._loading.add(index)
        self._to_load.send_nowait(index)

    async def _load_again(self, index: int) -> None:
        """A disk may be slow or full for a while, and this broker's next leadership of the partition, which is when
        Kafka tries again, never comes when there is no other broker."""
        failures = self._failed_loads.get(index, 0)
        self._failed_loads[index] = failures + 1
        delay_seconds = min(_FIRST_RETRY_SECONDS * 2**failures, _LAST_RETRY_SECONDS)
        log.error("groups of partition=%s-%d are loaded again in %d s", OFFSETS_TOPIC, index, delay_seconds)
        await trio.sleep(delay_seconds)
        partition = self._broker.partitions.of_topic(OFFSETS_TOPIC).get(index)
        if partition is None or partition.log.is_closed or self._broker.stopping:
            return
        if index not in self._runners and index not in self._loading:  # nobody made the topic anew meanwhile
            self._load_soon(index)

    async def _load(self, partition: Partition) -> bool:
        """Whether the shard is at work. Until then its groups are NOT_COORDINATOR, as in Kafka."""
        shard = self._new_shard()
        loader = ShardLoader(shard, partition.log, self._broker.config.get_int("offsets.load.buffer.size"))
        try:
            while not loader.is_done:
                await trio.to_thread.run_sync(loader.load_slice, self._broker.now_ms())
            self._start(partition, shard)
        except KafkaError as error:
            log.error("groups not loaded partition=%s error=%s", partition.log.name, error)
            return False
        except Exception:
            log.exception("groups not loaded partition=%s", partition.log.name)
            return False
        log.info(
            "groups loaded partition=%s records=%d groups=%d",
            partition.log.name,
            loader.record_count,
            len(shard.groups),
        )
        return True

    def _new_shard(self) -> GroupShard:
        return GroupShard(
            self._current_settings,
            self._consumer_settings,
            ShareGroupSettings(lambda: self._broker.config, self._overrides_of),
            self._topics,
            lambda: str(uuid.uuid4()),
        )

    def _overrides_of(self, group_id: str) -> Mapping[str, str]:
        return self._broker.image.configs.get((ResourceType.GROUP, group_id), {})

    def _current_settings(self) -> GroupSettings:
        if self._settings_of is not self._broker.config:
            self._settings_of = self._broker.config
            self._settings = GroupSettings.from_config(self._settings_of)
        return self._settings

    def _start(self, partition: Partition, shard: GroupShard) -> None:
        runner = ShardRunner(shard, partition, self._timers, self._wakeups, self._codec, self._share_effect)
        try:
            runner.resume(self._broker.now_ms())
        except Exception:
            runner.give_up(KafkaError(ErrorCode.NOT_COORDINATOR))
            raise
        self._runners[partition.index] = runner

    def _codec(self) -> int:
        return self._broker.config.get_int("offsets.topic.compression.codec")

    # Events ------------------------------------------------------------------------------------------------

    async def follow(self, delta: MetadataDelta) -> None:
        """The metadata changed: partitions of groups come and go, and groups hear of their topics."""
        deleted = frozenset(topic.name for topic in delta.deleted_topics)
        if OFFSETS_TOPIC in deleted:
            for runner in list(self._runners.values()):
                self._drop(runner, KafkaError(ErrorCode.NOT_COORDINATOR))
        partitions = self._broker.partitions.of_topic(OFFSETS_TOPIC)
        known = self._runners.keys() | self._loading  # of a coordinator made while the partitions were
        for topic, index in delta.new_partitions:
            if topic.name == OFFSETS_TOPIC and index in partitions and index not in known:
                self._take_over(partitions[index])
        changed = frozenset(topic.name for topic, _ in delta.new_partitions)
        if deleted or changed:
            async with Turns() as turns:
                for runner in list(self._runners.values()):
                    while deleted and runner.failure is None and runner.shard.offsets.has_topics(deleted):
                        self._let_happen(runner, OffsetsGone(deleted, PIECE_PARTITIONS))
                        await turns.rest()
                    self._let_happen(runner, TopicsChanged(changed, deleted))
                    await turns.rest()

    def _share_effect(self, effect: InitializeShareState | ShareMemberGone) -> None:
        self._broker.share.happen(effect)

    def happen(self, group_id: str, event: ShareStateInitialized | ShareStateRemoved) -> None:
        """Tell a group of its share partitions, if it is here; it asks again otherwise."""
        try:
            runner = self._runner_of(group_id)
        except KafkaError:
            return
        self._let_happen(runner, event)

    def _timer_fired(self, timer: RunnerTimer) -> None:
        self._let_happen(timer.runner, TimerFired(timer.key))

    def _let_happen(self, runner: ShardRunner, event: Event) -> None:
        """Nobody waits for the outcome; a shard that fails is loaded anew, with its bug in the log."""
        try:
            runner.happen(event, self._broker.now_ms())
        except KafkaError as error:
            self._give_up(runner, error)
        except Exception:
            log.exception("groups failed partition=%s event=%s", runner.partition.log.name, event)
            self._give_up(runner, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _give_up(self, runner: ShardRunner, error: KafkaError) -> None:
        """The shard is ahead of its log: forget it, and load it anew unless the broker stops."""
        if self._runners.get(runner.partition.index) is not runner:
            return
        self._drop(runner, KafkaError(ErrorCode.NOT_COORDINATOR))
        log.error("groups given up partition=%s error=%s", runner.partition.log.name, error)
        if not self._broker.stopping and not runner.partition.log.is_closed:
            self._load_soon(runner.partition.index)

    def _drop(self, runner: ShardRunner, failure: KafkaError) -> None:
        del self._runners[runner.partition.index]
        runner.give_up(failure)

    def begin_stop(self) -> None:
        """Let whoever waits for a group go and look for its coordinator."""
        for runner in list(self._runners.values()):
            self._drop(runner, KafkaError(ErrorCode.NOT_COORDINATOR))
