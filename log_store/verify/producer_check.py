"""The producers of a partition: folded from the batches as recovery does it, and held against the snapshots and the
transaction indexes on the way.

The fold begins with the snapshot of the first segment. Where that is missing in a log whose first records were
deleted, or where compaction took records away, the batches do not tell everything: then only what they do tell is
compared. A producer that a snapshot leaves out may have expired, unless it is in a transaction.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

from ottla.log_store.files import OS_FILE_SYSTEM, SNAPSHOT_SUFFIX, offset_name
from ottla.log_store.inspect.index_entries import read_txn_entries
from ottla.log_store.producer_entry import ProducerEntry
from ottla.log_store.producer_snapshot import CorruptSnapshot, read_snapshot
from ottla.log_store.producer_state import ProducerState
from ottla.log_store.txn_index import VERSION, AbortedTxn
from ottla.log_store.verify.finding import Finding, Findings
from ottla.wire.errors import KafkaError
from ottla.wire.records.header import BatchView


class ProducerCheck:
    """The state of the producers up to the batch that was added last."""

    def __init__(self, directory: str, first_offset: int, snapshot_offsets: Sequence[int]) -> None:
        self._directory = directory
        self._state = ProducerState(OS_FILE_SYSTEM, directory)
        self._waiting = sorted(offset for offset in snapshot_offsets if offset > first_offset)
        self._older = sorted(offset for offset in snapshot_offsets if offset <= first_offset)
        self._first_offset = first_offset
        self._aborted: list[AbortedTxn] = []
        self.is_exact = first_offset == 0
        """Whether the batches tell everything there is to know."""

    def load_first(self) -> Findings:
        """Begin with what was known before the first batch."""
        for offset in self._older:
            try:
                entries = read_snapshot(self._path(offset))
            except CorruptSnapshot as error:
                yield Finding(self._path(offset), f"the snapshot cannot be read: {error}")
                continue
            if offset == self._first_offset:
                self._state.load_entries(entries)
                self.is_exact = True

    def add(self, view: BatchView, path: str) -> Findings:
        """Go on to the end of a batch; the snapshots taken before it are compared first."""
        yield from self.reach(view.base_offset)
        if not view.has_producer_id:
            return
        try:
            for txn, last_stable_offset in self._state.replay((view,)):
                self._aborted.append(
                    AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset)
                )
        except KafkaError as error:
            problem = f"the marker cannot be read: {error.detail}"
            yield Finding(path, problem, offset=view.base_offset)

    def reach(self, offset: int) -> Findings:
        """Compare the snapshots that were taken at or before `offset`."""
        while self._waiting and self._waiting[0] <= offset:
            yield from self._compare(self._waiting.pop(0), offset)

    def end(self, log_end_offset: int) -> Findings:
        """No batch follows."""
        yield from self.reach(log_end_offset)
        for offset in self._waiting:
            problem = f"the snapshot is of an offset beyond the end of the log, {log_end_offset}"
            yield Finding(self._path(offset), problem, offset=offset)

    def check_txn_index(self, path: str) -> Findings:
        """Hold the index of a segment against the transactions that were aborted in it."""
        aborted, self._aborted = self._aborted, []
        if not os.path.exists(path):
            if aborted and self.is_exact:
                yield Finding(path, f"the file is missing, but {len(aborted)} transactions were aborted")
            return
        entries, _, odd_bytes = read_txn_entries(path)
        if odd_bytes:
            yield Finding(path, f"{odd_bytes} bytes at the end are no whole entry")
        unknown = [entry.version for entry in entries if entry.version != VERSION]
        if unknown:
            yield Finding(path, f"an entry has version {unknown[0]}, which is not known")
            return
        found = [entry.txn for entry in entries]
        for before, after in itertools.pairwise(found):
            if after.last_offset <= before.last_offset:
                problem = f"the entry does not follow offset {before.last_offset}"
                yield Finding(path, problem, offset=after.last_offset)
        if not self.is_exact:
            return  # compaction leaves out the transactions of which nothing but the marker is left
        for txn in aborted:
            if txn not in found:
                problem = f"the abort of producer {txn.producer_id} from offset {txn.first_offset} is missing"
                yield Finding(path, problem, offset=txn.last_offset)
        for txn in found:
            if txn not in aborted:
                yield Finding(path, f"no such transaction was aborted: {txn}", offset=txn.last_offset)

    def _compare(self, offset: int, reached: int) -> Findings:
        path = self._path(offset)
        try:
            told = {entry.producer_id: entry for entry in read_snapshot(path)}
        except FileNotFoundError:
            return
        except CorruptSnapshot as error:
            yield Finding(path, f"the snapshot cannot be read: {error}")
            return
        if offset != reached and self.is_exact:
            yield Finding(path, "no batch begins at the offset of the snapshot", offset=offset)
            return
        for producer_id, entry in told.items():
            known = self._state.producers.get(producer_id)
            if known is None:
                if self.is_exact:
                    yield Finding(path, f"producer {producer_id} never wrote to this log")
            elif self.is_exact and _facts(known) != _facts(entry):
                wrong = [
                    f"{name} {_facts(entry)[name]} instead of {value}"
                    for name, value in _facts(known).items()
                    if _facts(entry)[name] != value
                ]
                yield Finding(path, f"producer {producer_id} has {', '.join(wrong)}")
        for producer_id, known in self._state.producers.items():
            if producer_id not in told and known.current_txn_first_offset is not None and self.is_exact:
                yield Finding(path, f"producer {producer_id} is missing, whose transaction is open")

    def _path(self, offset: int) -> str:
        return os.path.join(self._directory, offset_name(offset) + SNAPSHOT_SUFFIX)


def _facts(entry: ProducerEntry) -> dict[str, int | None]:
    last = entry.batches[-1] if entry.batches else None
    return {
        "epoch": entry.producer_epoch,
        "last_sequence": entry.last_sequence,
        "last_offset": entry.last_offset,
        "first_offset": last.first_offset if last else -1,
        "timestamp": entry.last_timestamp,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_first_offset": entry.current_txn_first_offset,
    }
