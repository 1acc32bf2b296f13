"""The producers of a partition: duplicates, fencing, open transactions, and the snapshots that keep them.

An append is checked here before anything is written (`check`) and noted once it is written (`commit`), so a
refused batch leaves no trace. Recovery replays batches without checking them.

An offset is unstable while its transaction is open, or is closed by a marker that the high watermark has not
passed: `first_unstable_offset` is the first such, and the last stable offset ends there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.log_store.files import (
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    FileSystem,
    offset_name,
    unlink_if_there,
)
from ottla.log_store.producer_entry import LAST_SEQUENCE, BatchMetadata, ProducerEntry
from ottla.log_store.producer_snapshot import CorruptSnapshot, read_snapshot, write_snapshot
from ottla.log_store.verification import NOT_REQUIRED, Verification, Verifications
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, control_type_of, coordinator_epoch_of
from ottla.wire.records.header import TRANSACTIONAL_BIT, BatchView
from ottla.wire.records.records import iter_records

if TYPE_CHECKING:
    from ottla.log_store.batch_run import BatchRun

logger = logging.getLogger("ottla.log_store")

PRODUCER_ID_EXPIRATION_MS = 86_400_000


class CompletedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerUpdate:
    """What an append will change: new states by producer id, transactions begun and ended."""

    __slots__ = ("completed", "entries", "marked", "started")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.marked: dict[int, int] = {}  # producer ids with the epochs of their markers
        self.started: list[tuple[int, int]] = []  # (first offset, producer id)
        self.completed: list[CompletedTxn] = []


class ProducerState:
    """Everything known of the producers of one partition up to `map_end_offset`."""

    def __init__(
        self, fs: FileSystem, directory: str, expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        self.map_end_offset = 0
        self.first_unstable_offset: int | None = None
        self.verifications = Verifications()
        self.refill_window: Callable[[ProducerEntry], None] = keep_window
        self._last_snapshot_offset = 0
        self._snapshots: set[int] = set()
        self._ongoing: dict[int, int] = {}  # first offset -> producer id, in the order of the offsets
        self._unreplicated: dict[int, int] = {}  # first offset -> offset of the marker

    # ---- appends

    def next_of(
        self, producer_id: int, epoch: int, sequence: int, *, is_transactional: bool
    ) -> ProducerEntry | None:
        """The producer whose next batch plainly begins with this sequence, so that it repeats nothing and needs no more
        checks: it goes on where the last one ended, in the same transaction or outside of any. None says that the
        batch must be looked at."""
        entry = self.producers.get(producer_id)
        if (
            entry is None
            or entry.producer_epoch != epoch
            or not entry.batches
            or entry.batches[-1].last_sequence + 1 != sequence
            or (entry.current_txn_first_offset is not None) != is_transactional
            or self.verifications
        ):
            return None
        return entry

    def next_of_run(self, run: BatchRun) -> list[ProducerEntry | None] | None:
        """The same for each batch of a run, outside of transactions. For one without a producer id it is None, and None
        in the place of all says that one of them must be looked at."""
        if self.verifications:
            return None
        entries: list[ProducerEntry | None] = []
        expected: dict[int, int] = {}  # the next sequence of producers of whom a batch is in the run
        for records, _, producer_id, epoch, sequence in run.heads:
            if producer_id < 0:
                entries.append(None)
                continue
            entry = self.producers.get(producer_id)
            if entry is None or entry.producer_epoch != epoch or sequence + records > LAST_SEQUENCE:
                return None
            next_sequence = expected.get(producer_id)
            if next_sequence is None:
                if not entry.batches or entry.current_txn_first_offset is not None:
                    return None
                next_sequence = entry.batches[-1].last_sequence + 1
            if sequence != next_sequence:
                return None
            expected[producer_id] = sequence + records
            entries.append(entry)
        return entries

    def duplicate_of(self, batch: BatchView) -> BatchMetadata | None:
        """The batch that this one repeats, if it is one of the last five of its producer."""
        entry = self.producers.get(batch.producer_id)
        if entry is None:
            return None
        epoch, first, last = batch.producer_epoch, batch.base_sequence, batch.last_sequence
        found = entry.duplicate_of(epoch, first, last)
        if found is None and entry.is_partial and first != (entry.last_sequence + 1) & LAST_SEQUENCE:
            entry.is_partial = False
            self.refill_window(entry)
            found = entry.duplicate_of(epoch, first, last)
        return found

    def check_client_batch(self, batch: BatchView, verification: Verification | None = NOT_REQUIRED) -> None:
        """KafkaError unless a producer's data batch may be appended now."""
        producer_id = batch.producer_id
        entry = self.producers.get(producer_id)
        if batch.attributes & TRANSACTIONAL_BIT:
            self.verifications.check(entry, producer_id, batch.producer_epoch, verification)
        if self.verifications:
            if entry is not None:
                entry.check_epoch(batch.producer_epoch)
            self.verifications.check_sequence(entry, producer_id, batch.base_sequence)
        if entry is None:
            return
        entry.check_epoch(batch.producer_epoch)
        entry.check_sequence(batch.producer_epoch, batch.base_sequence)
        if entry.current_txn_first_offset is not None and not batch.is_transactional:
            entry.begin_or_continue_txn(0, is_transactional=False)

    def commit_client_batch(self, batch: BatchView, first_offset: int, timestamp: int) -> None:
        """Note a checked data batch that now lies at `first_offset`."""
        producer_id = batch.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        last_offset = first_offset + batch.last_offset_delta
        entry.add_batch(
            batch.producer_epoch,
            BatchMetadata(batch.base_sequence, batch.last_sequence, first_offset, last_offset, timestamp),
        )
        if entry.begin_or_continue_txn(first_offset, is_transactional=batch.is_transactional):
            self._ongoing[first_offset] = producer_id
            self._find_first_unstable()
        if self.verifications and batch.is_transactional:
            self.verifications.data_written(producer_id)

    def start_verification(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> Verification | None:
        """What must stand when the first batch of a transaction is appended; None if the transaction goes on."""
        return self.verifications.start(
            self.producers.get(producer_id),
            producer_id,
            epoch,
            sequence,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def check_verified(self, producer_id: int, epoch: int, verification: Verification | None) -> None:
        """KafkaError unless a coordinator's transactional batch may be appended now."""
        self.verifications.check(self.producers.get(producer_id), producer_id, epoch, verification)

    def prepare(
        self, batches: Iterable[BatchView], *, trusted: bool, transaction_version: int = 0
    ) -> ProducerUpdate:
        """What appending these batches, which have their offsets, will change. `trusted` batches were checked
        by whoever wrote them first: only their effect is wanted."""
        update = ProducerUpdate()
        for batch in batches:
            if not batch.has_producer_id:
                continue
            entry = update.entries.get(batch.producer_id)
            if entry is None:
                known = self.producers.get(batch.producer_id)
                entry = known.copy() if known else ProducerEntry(batch.producer_id)
                update.entries[batch.producer_id] = entry
            if batch.is_control:
                self._prepare_marker(update, entry, batch, trusted, transaction_version)
            else:
                if not trusted:
                    entry.check_epoch(batch.producer_epoch)
                elif entry.current_txn_first_offset is not None and not batch.is_transactional:
                    entry.current_txn_first_offset = None  # it is in the log, so it was accepted
                self._prepare_data(update, entry, batch)
        return update

    def commit(self, update: ProducerUpdate) -> list[tuple[CompletedTxn, int]]:
        """Apply a prepared update; returns the aborted transactions with the last stable offset of each."""
        self.producers.update(update.entries)
        aborted = []
        for first_offset, producer_id in update.started:
            self._ongoing[first_offset] = producer_id
        for txn in update.completed:
            if txn.is_aborted:
                aborted.append((txn, self._last_stable_offset_after(txn)))
            self._ongoing.pop(txn.first_offset, None)
            self._unreplicated[txn.first_offset] = txn.last_offset
        if update.started or update.completed:
            self._find_first_unstable()
        if self.verifications:
            for producer_id in update.entries:
                if producer_id in update.marked:
                    self.verifications.marker_written(producer_id, update.marked[producer_id])
                else:
                    self.verifications.data_written(producer_id)
        return aborted

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Markers below the high watermark are settled."""
        if self._unreplicated:
            for first_offset, last_offset in list(self._unreplicated.items()):
                if last_offset < high_watermark:
                    del self._unreplicated[first_offset]
            self._find_first_unstable()

    def remove_expired(self, now_ms: int) -> int:
        """Forget the producers that wrote nothing for so long and have no open transaction."""
        expired = [entry.producer_id for entry in self.producers.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self.producers[producer_id]
        self.verifications.remove_older(self.expiration_ms, now_ms)
        return len(expired)

    def _prepare_data(self, update: ProducerUpdate, entry: ProducerEntry, batch: BatchView) -> None:
        entry.add_batch(
            batch.producer_epoch,
            BatchMetadata(
                batch.base_sequence,
                batch.last_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
            ),
        )
        if entry.begin_or_continue_txn(batch.base_offset, is_transactional=batch.is_transactional):
            update.started.append((batch.base_offset, entry.producer_id))

    def _prepare_marker(
        self, update: ProducerUpdate, entry: ProducerEntry, batch: BatchView, trusted: bool, version: int
    ) -> None:
        record = next(iter_records(batch), None)
        if record is None:  # compaction removed the whole transaction
            return
        control_type = control_type_of(record)
        if control_type not in (ControlType.ABORT, ControlType.COMMIT):
            return
        coordinator_epoch = coordinator_epoch_of(record)
        if not trusted:
            _check_marker(entry, batch.producer_epoch, coordinator_epoch, version)
        update.marked[entry.producer_id] = batch.producer_epoch
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            is_aborted = control_type == ControlType.ABORT
            update.completed.append(
                CompletedTxn(entry.producer_id, first_offset, batch.base_offset, is_aborted)
            )
        entry.end_txn(batch.producer_epoch, coordinator_epoch, record.timestamp)

    def _last_stable_offset_after(self, txn: CompletedTxn) -> int:
        others = (first for first, producer_id in self._ongoing.items() if producer_id != txn.producer_id)
        return next(others, txn.last_offset + 1)

    def _find_first_unstable(self) -> None:
        first = next(iter(self._ongoing), None)
        if self._unreplicated:
            unreplicated = min(self._unreplicated)
            first = unreplicated if first is None else min(first, unreplicated)
        self.first_unstable_offset = first

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        if entry.current_txn_first_offset is not None:
            return False
        return now_ms - entry.last_timestamp >= self.expiration_ms

    # ---- snapshots and loading

    @property
    def snapshot_offsets(self) -> Sequence[int]:
        return sorted(self._snapshots)

    def found_snapshots(self, offsets: Iterable[int]) -> None:
        """Tell which snapshot files the directory holds."""
        self._snapshots = set(offsets)

    def take_snapshot(self, *, sync: bool) -> int | None:
        """Write the state down, if it is ahead of the last snapshot; returns the offset it is named after."""
        offset = self.map_end_offset
        if offset <= self._last_snapshot_offset:
            return None
        write_snapshot(self.fs, self.snapshot_path(offset), list(self.producers.values()), sync=sync)
        self._snapshots.add(offset)
        self._last_snapshot_offset = offset
        return offset

    def truncate_and_reload(self, log_start_offset: int, end_offset: int, now_ms: int) -> None:
        """Go back to the newest snapshot from the log start to `end_offset`; the caller replays what follows.

        Kafka drops the one at the log start, and so forgets the producers of a log whose records are all deleted.
        """
        for offset in list(self._snapshots):
            if offset > end_offset or offset < log_start_offset:
                self._delete_snapshot(offset)
        self._clear()
        while self._snapshots:
            offset = max(self._snapshots)
            try:
                loaded = read_snapshot(self.snapshot_path(offset))
            except (CorruptSnapshot, OSError) as error:
                logger.warning(
                    "producer snapshot dropped path=%s error=%s", self.snapshot_path(offset), error
                )
                self._delete_snapshot(offset)
                continue
            self.load_entries(entry for entry in loaded if not self._is_expired(entry, now_ms))
            self.map_end_offset = self._last_snapshot_offset = offset
            return
        self.map_end_offset = self._last_snapshot_offset = log_start_offset

    def replay(self, batches: Iterable[BatchView]) -> list[tuple[CompletedTxn, int]]:
        """Take over the effect of batches that are in the log already."""
        aborted = []
        for batch in batches:
            if batch.has_producer_id:
                aborted += self.commit(self.prepare((batch,), trusted=True))
            self.map_end_offset = batch.next_offset
        return aborted

    def replay_data(
        self,
        producer_id: int,
        epoch: int,
        sequences: tuple[int, int],
        offsets: tuple[int, int],
        timestamp: int,
    ) -> ProducerEntry:
        """Take over one data batch outside of transactions that is in the log already, told by its (first,
        last) sequences and offsets: what `replay` does for any batch, for the scan of a whole log."""
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        entry.current_txn_first_offset = None  # it is in the log, so it was accepted
        entry.add_batch(epoch, BatchMetadata(*sequences, *offsets, timestamp))
        return entry

    def truncate_fully(self, offset: int) -> None:
        """The log is empty and begins at `offset`."""
        for snapshot in list(self._snapshots):
            self._delete_snapshot(snapshot)
        self._clear()
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def advance_log_start(self, log_start_offset: int) -> None:
        self.advance_high_watermark(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        self._last_snapshot_offset = max(self._snapshots, default=0)

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Delete the snapshots that belong to no segment, except the one beyond the last segment's base that
        a clean stop left."""
        bases = set(segment_base_offsets)
        strays = sorted(self._snapshots - bases)
        if strays and strays[-1] > max(bases, default=-1):
            strays.pop()
        for offset in strays:
            self._delete_snapshot(offset)

    def mark_snapshot_deleted(self, offset: int) -> str | None:
        """Rename the snapshot of a deleted segment; returns the file to remove."""
        if offset not in self._snapshots:
            return None
        self._snapshots.discard(offset)
        path = self.snapshot_path(offset)
        try:
            self.fs.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            return None
        return path + DELETED_SUFFIX

    def snapshot_path(self, offset: int) -> str:
        return os.path.join(self.directory, offset_name(offset) + SNAPSHOT_SUFFIX)

    def load_entries(self, entries: Iterable[ProducerEntry]) -> None:
        """Begin with what a snapshot tells, whatever its age."""
        ongoing = []
        for entry in entries:
            self.producers[entry.producer_id] = entry
            if entry.current_txn_first_offset is not None:
                ongoing.append((entry.current_txn_first_offset, entry.producer_id))
        self._ongoing.update(sorted(ongoing))
        self._find_first_unstable()

    def _clear(self) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.verifications.clear()
        self.first_unstable_offset = None

    def _delete_snapshot(self, offset: int) -> None:
        self._snapshots.discard(offset)
        unlink_if_there(self.fs, self.snapshot_path(offset))


def keep_window(entry: ProducerEntry) -> None:
    """The window of a producer whose log cannot be asked for older batches."""


def _check_marker(entry: ProducerEntry, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
    """A marker must not come from an older coordinator nor carry an older epoch. With transactions V2 each
    transaction has its own epoch, so the marker's must be newer than the data's (KIP-890); one that repeats
    an ended transaction is let through, since the coordinator may retry."""
    if transaction_version >= 2 and epoch == entry.producer_epoch:
        if entry.current_txn_first_offset is not None and epoch != 0x7FFF:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"The marker for producer {entry.producer_id} has epoch {epoch}, which is not newer than "
                "that of its transaction.",
            )
    else:
        entry.check_epoch(epoch)
    if coordinator_epoch < entry.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Coordinator epoch {coordinator_epoch} for producer {entry.producer_id} is older than "
            f"{entry.coordinator_epoch}.",
        )
