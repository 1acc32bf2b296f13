"""The share partitions of this broker: read from the log, handed to members, taken back, and kept.

Everything that changes a state is written to `__share_group_state` in the same turn of the loop; if that fails the
share partition is forgotten, and read back from what is kept when it is needed again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from ottla.group_coordinator.share.settings import ShareGroupSettings, ShareGroupValues
from ottla.group_coordinator.share_partition.acknowledge import (
    Acknowledgement,
    LockRules,
    acknowledge,
    release_member,
    release_overdue,
)
from ottla.group_coordinator.share_partition.partition import SharePartition, state_batches
from ottla.group_coordinator.share_partition.runs import Run
from ottla.group_coordinator.share_state.shard import UNINITIALIZED, SharePartitionKey, StateWrite
from ottla.server.groups.timers import Timers
from ottla.server.partition import AppendWaiter, Partition
from ottla.server.share.states import ShareStates
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_DURATION = re.compile(
    r"by_duration:p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)(?:\.(\d{0,9}))?s)?)?", re.IGNORECASE
)


class LivePartition:
    """A share partition in use, and who waits for records of it."""

    __slots__ = ("key", "partition", "state", "state_epoch", "waiters")

    def __init__(
        self, key: SharePartitionKey, partition: Partition, state: SharePartition, state_epoch: int
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = state
        self.state_epoch = state_epoch
        self.waiters: set[AppendWaiter] = set()

    def wake(self) -> None:
        """Something is available that was not."""
        for waiter in self.waiters:
            waiter.notify()


class SharePartitions:
    """The share partitions in use by their keys."""

    def __init__(self, broker: Broker, states: ShareStates, settings: ShareGroupSettings) -> None:
        self._broker = broker
        self._states = states
        self._settings = settings
        self._live: dict[SharePartitionKey, LivePartition] = {}
        self._timers: Timers[SharePartitionKey] = Timers(self._locks_ended)

    async def run(self) -> None:
        """Take records back whose locks run out, until cancelled."""
        await self._timers.run()

    # Finding -----------------------------------------------------------------------------------------------

    async def find(self, group_id: str, topic_id: Uuid, index: int) -> LivePartition:
        """The share partition, read back from what is kept when it is not in use yet. Raises KafkaError."""
        key = SharePartitionKey(group_id, topic_id, index)
        partition = self._broker.partitions.by_id(topic_id, index)
        live = self._live.get(key)
        if live is not None and live.partition is partition:
            return live
        kept = self._states.read(key, partition.leader_epoch)
        start_offset = kept.start_offset
        if start_offset == UNINITIALIZED:
            reset = self._settings.of_group(group_id).auto_offset_reset
            start_offset = await self._first_offset(partition, reset)
        await self._states.flush_if_due()
        if key not in self._live or self._live[key].partition is not partition:
            state = SharePartition(start_offset, kept.batches)
            self._live[key] = LivePartition(key, partition, state, kept.state_epoch)
        return self._live[key]

    def find_nowait(self, key: SharePartitionKey) -> LivePartition:
        """The share partition if it is in use; UNKNOWN_TOPIC_OR_PARTITION."""
        live = self._live.get(key)
        if live is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return live

    async def _first_offset(self, partition: Partition, reset: str) -> int:
        if reset == "earliest":
            return partition.log.log_start_offset
        if reset.startswith("by_duration:"):
            since_ms = self._broker.now_ms() - _milliseconds(reset)
            found = await trio.to_thread.run_sync(partition.log.offset_for_timestamp, since_ms)
            if found is not None:
                return found.offset
        return partition.log.high_watermark

    def forget(self, is_meant: Callable[[SharePartitionKey], bool]) -> None:
        """Nobody uses them any more, or what is kept of them has changed."""
        for key in [key for key in self._live if is_meant(key)]:
            self._drop(self._live[key])

    def _drop(self, live: LivePartition) -> None:
        if self._live.get(live.key) is live:
            del self._live[live.key]
            self._timers.cancel(live.key)
        live.wake()

    # Changing ----------------------------------------------------------------------------------------------

    def acknowledge(
        self, live: LivePartition, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> None:
        """What a member says of its records. Raises KafkaError, and then nothing of it counts."""
        values = self._settings.of_group(live.key.group_id)
        rules = LockRules(values.delivery_count_limit, self.lock_end_ms(values), values.renew_enabled)
        self._keep(live, acknowledge(live.state, member_id, acknowledgements, rules))

    def release_member(self, key: SharePartitionKey, member_id: str) -> None:
        """A member is gone."""
        live = self._live.get(key)
        if live is None:
            return
        limit = self._settings.of_group(key.group_id).delivery_count_limit
        self._try_keep(live, release_member(live.state, member_id, limit))

    def lock_end_ms(self, values: ShareGroupValues) -> int:
        """When a lock that begins now runs out, by a clock that nobody sets."""
        return _clock_ms() + values.record_lock_duration_ms

    def watch_locks(self, live: LivePartition) -> None:
        """Have a look when the next lock runs out."""
        ends_ms = live.state.next_lock_ends_ms
        if ends_ms is None:
            self._timers.cancel(live.key)
        else:
            self._timers.set(live.key, ends_ms / 1000)

    def _locks_ended(self, key: SharePartitionKey) -> None:
        live = self._live.get(key)
        if live is None:
            return
        limit = self._settings.of_group(key.group_id).delivery_count_limit
        self._try_keep(live, release_overdue(live.state, _clock_ms(), limit))

    def _try_keep(self, live: LivePartition, changed: list[Run]) -> None:
        try:
            self._keep(live, changed)
        except KafkaError as error:
            log.error("share partition not kept key=%s error=%s", live.key, error)

    def _keep(self, live: LivePartition, changed: list[Run]) -> None:
        if changed:
            state = live.state
            write = StateWrite(
                live.state_epoch,
                live.partition.leader_epoch,
                state.start_offset,
                state.delivery_complete_count,
                state_batches(changed),
            )
            try:
                self._states.write(live.key, write)
            except KafkaError as error:
                self._drop(live)
                raise KafkaError(told(error.code), error.detail) from error
            state.settle()
            live.wake()
        self.watch_locks(live)

    def values_of(self, group_id: str) -> ShareGroupValues:
        """What the group goes by."""
        return self._settings.of_group(group_id)


def _clock_ms() -> int:
    return round(trio.current_time() * 1000)


def _milliseconds(reset: str) -> int:
    match = _DURATION.fullmatch(reset)
    assert match is not None, reset  # the config was checked when it was set
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups()[:4])
    fraction_ms = int((match[5] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms


def told(code: ErrorCode) -> ErrorCode:
    """What a member learns of a coordinator that does not answer: to try again."""
    if code in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if code is ErrorCode.INVALID_REQUEST:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code
