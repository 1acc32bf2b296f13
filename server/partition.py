"""A partition this broker leads: its log, and who waits for it to grow.

With one replica a record is committed as soon as it is in the log, so the high watermark follows every append.
"""

from __future__ import annotations

from typing import Protocol

from ottla.log_store.appends import AppendResult
from ottla.log_store.batch_run import BatchHead, BatchRun, append_run
from ottla.log_store.log import Log
from ottla.log_store.plain_append import append_plain
from ottla.log_store.validation import (
    AppendOrigin,
    CostlyBatch,
    is_costly,
    prepare_client_batch,
)
from ottla.log_store.verification import Verification
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import BatchView

_CLIENT = AppendOrigin.CLIENT


class AppendWaiter(Protocol):
    """Something that wants to hear of the next change, such as a Fetch below its min_bytes. One that reads committed
    records only is better among the `committed_waiters`: an append to an open transaction is no news to it."""

    def notify(self) -> None:
        """The partition has grown, or is gone. May be called more than once."""


class Partition:
    """The leader's side of one partition."""

    __slots__ = (
        "_committed_waiters",
        "_told_stable_offset",
        "_waiters",
        "flushed_ms",
        "index",
        "leader_epoch",
        "log",
        "topic",
    )

    def __init__(self, topic: str, index: int, log: Log, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self._waiters: set[AppendWaiter] | None = None
        self._committed_waiters: set[AppendWaiter] | None = None
        self._told_stable_offset = -1  # the last stable offset at which these were last woken
        self.flushed_ms = 0  # when everything in the log was last known to be on the disk

    @property
    def waiters(self) -> set[AppendWaiter]:
        """Who wants to hear of every append. Sets are made for who waits: most of very many partitions have nobody."""
        if self._waiters is None:
            self._waiters = set()
        return self._waiters

    @property
    def committed_waiters(self) -> set[AppendWaiter]:
        """Who wants to hear when the last stable offset moves."""
        if self._committed_waiters is None:
            self._committed_waiters = set()
        return self._committed_waiters

    def append(
        self,
        batches: memoryview,
        now_ms: int,
        origin: AppendOrigin = _CLIENT,
        transaction_version: int = 0,
        verification: Verification | None = None,
    ) -> AppendResult:
        """Append batches and wake whoever waits for them. Raises KafkaError, or CostlyBatch if a client's batch must
        be prepared in a worker thread and handed to `append_prepared`. A client's batch that begins a transaction
        needs its verification."""
        log = self.log
        if origin is _CLIENT:
            if is_costly(batches, log.rules):
                raise CostlyBatch
            batch = prepare_client_batch(batches, log.rules, now_ms, may_take_long=False)
            return self.append_prepared(batch, now_ms, verification)
        result = log.append(
            batches,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            transaction_version=transaction_version,
        )
        self._note_append()
        return result

    def append_prepared(
        self, batch: BatchView, now_ms: int, verification: Verification | None = None
    ) -> AppendResult:
        """Append a producer's batch that `prepare_client_batch` has checked. Raises KafkaError."""
        result = self.log.append_prepared(batch, self.leader_epoch, now_ms, verification)
        self._note_append()
        return result

    def append_plain(
        self, batch: memoryview | bytearray, head: BatchHead, now_ms: int, *, is_transactional: bool = False
    ) -> int | None:
        """Append an ordinary batch: its first offset; None if it is to be appended as any other. Raises KafkaError."""
        base_offset = append_plain(
            self.log, batch, head, self.leader_epoch, now_ms, is_transactional=is_transactional
        )
        if base_offset is not None:
            self._note_append()
        return base_offset

    def append_run(self, run: BatchRun, now_ms: int) -> list[int] | None:
        """Append the batches of several producers in one write: the first offset of each; None if each is to be
        appended by itself. Raises KafkaError."""
        offsets = append_run(self.log, run, self.leader_epoch, now_ms)
        if offsets is not None:
            self._note_append()
        return offsets

    def _note_append(self) -> None:
        self.log.advance_high_watermark(self.log.log_end_offset)
        if self._waiters:
            for waiter in self._waiters:
                waiter.notify()
        if self._committed_waiters:
            stable_offset = self.log.last_stable_offset
            if stable_offset != self._told_stable_offset:
                self._told_stable_offset = stable_offset
                for waiter in self._committed_waiters:
                    waiter.notify()

    def wake(self) -> None:
        """Tell every waiter to look again."""
        for waiter in (*(self._waiters or ()), *(self._committed_waiters or ())):
            waiter.notify()

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader's epoch is not ours (KIP-320). -1 means it has none."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
