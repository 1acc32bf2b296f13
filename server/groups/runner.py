"""One loaded shard at work: executes its effects on the log of its partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import trio

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
    TimerKey,
)
from ottla.group_coordinator.offsets import NO_PRODUCER_ID
from ottla.group_coordinator.records import encode_key, encode_value
from ottla.group_coordinator.shard import GroupShard
from ottla.log_store.validation import AppendOrigin
from ottla.log_store.verification import Verification
from ottla.server.groups.timers import Timers
from ottla.server.groups.wakeups import Wakeups
from ottla.server.partition import Partition
from ottla.wire.errors import KafkaError
from ottla.wire.records import Record, build_batch


class RunnerTimer(NamedTuple):
    """A timer of one of the shards."""

    runner: ShardRunner
    key: TimerKey


class TransactionRefused(KafkaError):
    """The log does not take records of this producer's transaction now."""


class ShardRunner:
    """A shard, the partition it writes to, and who waits for it.

    An append that fails leaves the shard ahead of its log, so it is given up: everyone who waits is told, and it has to
    be loaded anew.
    """

    def __init__(
        self,
        shard: GroupShard,
        partition: Partition,
        timers: Timers[RunnerTimer],
        wakeups: Wakeups,
        codec: Callable[[], int],
        share: Callable[[InitializeShareState | ShareMemberGone], None],
    ) -> None:
        self.shard = shard
        self.partition = partition
        self.failure: KafkaError | None = None
        self.flush_due = False
        self._timers = timers
        self._wakeups = wakeups
        self._codec = codec
        self._share = share
        self._answers: dict[int, Any] = {}
        self._parked: dict[int, trio.Event] = {}

    def resume(self, now_ms: int) -> None:
        """Begin to work: the log has been replayed."""
        self._execute(self.shard.loaded(now_ms), now_ms)

    def happen(self, event: Event, now_ms: int) -> None:
        """Let the shard decide about an event and do what it says. Raises KafkaError when the shard is given up."""
        if self.failure is not None:
            raise self.failure
        self._execute(self.shard.handle(event, now_ms), now_ms)

    def ask(self, request: GroupRequest, now_ms: int) -> Any:
        """The answer to a request; None when it has to be waited for. Raises KafkaError when the shard is given up."""
        waiter = request.waiter
        self._answers[waiter] = None
        try:
            self.happen(request, now_ms)
        finally:
            answer = self._answers.pop(waiter)
        return answer

    def ask_in_transaction(
        self, request: GroupRequest, producer: tuple[int, int], verification: Verification | None, now_ms: int
    ) -> Any:
        """The answer to a request whose records belong to the transaction of a producer, by id and epoch. Raises
        TransactionRefused, with nothing changed, if these may not be written now; KafkaError as `ask`."""
        if self.failure is not None:
            raise self.failure
        effects = self.shard.handle(request, now_ms)
        if any(isinstance(effect, Append) for effect in effects):
            try:
                self.partition.log.producers.check_verified(*producer, verification)
            except KafkaError as error:
                raise TransactionRefused(error.code, error.detail) from error
        self._answers[request.waiter] = None
        try:
            self._execute(effects, now_ms)
        finally:
            answer = self._answers.pop(request.waiter)
        return answer

    async def wait_for_answer(self, waiter: int) -> Any:
        """The answer that was not there at once. Raises KafkaError when the shard is given up first."""
        parked = self._parked[waiter] = trio.Event()
        self._answers[waiter] = None
        try:
            await parked.wait()
        finally:
            del self._parked[waiter]
            answer = self._answers.pop(waiter)
        if answer is None:
            assert self.failure is not None
            raise self.failure
        return answer

    async def flush(self) -> None:
        """The log is due to be flushed; answers wait for it."""
        self.flush_due = False
        await trio.to_thread.run_sync(self.partition.log.flush)

    def give_up(self, failure: KafkaError) -> None:
        """Let go of everyone who waits."""
        self.failure = failure
        self._timers.cancel_all(lambda timer: timer.runner is self)
        for parked in self._parked.values():
            parked.set()

    def _execute(self, effects: list[Effect], now_ms: int) -> None:
        now = trio.current_time()
        for effect in effects:
            if isinstance(effect, Reply):
                self._answer(effect)
            elif isinstance(effect, SetTimer):
                delay = max(0, effect.at_ms - now_ms) / 1000
                self._timers.set(RunnerTimer(self, effect.key), now + delay)
            elif isinstance(effect, CancelTimer):
                self._timers.cancel(RunnerTimer(self, effect.key))
            elif isinstance(effect, Append):
                self._append(effect, now_ms)
            else:
                self._share(effect)

    def _answer(self, reply: Reply) -> None:
        if reply.waiter in self._answers:  # its connection may have gone
            self._answers[reply.waiter] = reply.response
            parked = self._parked.get(reply.waiter)
            if parked is not None:
                self._wakeups.wake(parked)

    def _append(self, effect: Append, now_ms: int) -> None:
        records = [
            Record(offset, now_ms, encode_key(record.key), encode_value(record.value))
            for offset, record in enumerate(effect.records)
        ]
        batch = build_batch(
            records,
            codec=self._codec(),
            producer_id=effect.producer_id,
            producer_epoch=effect.producer_epoch,
            is_transactional=effect.producer_id != NO_PRODUCER_ID,
        )
        result = self.partition.append(memoryview(bytearray(batch)), now_ms, AppendOrigin.COORDINATOR)
        self.flush_due = self.flush_due or result.flush_due
        for offset, record in enumerate(effect.records, result.base_offset):
            self.shard.apply(record, now_ms, effect.producer_id, offset)

    def end_transaction(
        self, batch: memoryview, now_ms: int, producer_id: int, *, committed: bool, transaction_version: int
    ) -> bool:
        """Append a marker and let it count; whether a flush is due. Raises KafkaError, with nothing changed, when the
        log refuses it."""
        if self.failure is not None:
            raise self.failure
        result = self.partition.append(batch, now_ms, AppendOrigin.COORDINATOR, transaction_version)
        self.shard.end_transaction(producer_id, committed=committed)
        return result.flush_due
