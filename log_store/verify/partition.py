"""A partition's directory: all of its files against each other.

Small files and indexes are read before the segments they speak of, so that beside a running broker everything they
promise is already there. What a running broker has only begun (the last batch, files that wait for their removal) is
no finding then; nor are the zeros behind the entries of the last segment's indexes, at any time.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ottla.log_store.files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_name,
    offset_of_name,
)
from ottla.log_store.inspect.batch_file import BatchFile, OnBytes, ignore_bytes
from ottla.log_store.inspect.index_entries import (
    Entries,
    OffsetEntry,
    read_offset_entries,
    read_time_entries,
)
from ottla.log_store.leader_epochs import FILE_NAME as LEADER_EPOCHS
from ottla.log_store.partition_metadata import FILE_NAME as PARTITION_METADATA
from ottla.log_store.partition_metadata import CorruptPartitionMetadata, read_partition_metadata
from ottla.log_store.time_index import TimeEntry
from ottla.log_store.verify.epoch_check import EpochCheck
from ottla.log_store.verify.finding import Finding, Findings
from ottla.log_store.verify.producer_check import ProducerCheck
from ottla.log_store.verify.segment_check import SegmentWalk
from ottla.wire.uuids import Uuid

_SEGMENT_FILE = re.compile(r"\d{20}(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)\Z")
_METADATA_SNAPSHOT = re.compile(r"\d{20}-\d{10}\.checkpoint\Z")
_SMALL_FILES = (LEADER_EPOCHS, PARTITION_METADATA, "quorum-state")
_LEFTOVERS = {
    DELETED_SUFFIX: "a file that waits for its removal",
    CLEANED_SUFFIX: "what an interrupted compaction left",
    SWAP_SUFFIX: "a compacted file that is not in its place yet",
    ".tmp": "a small file that was being written",
    ".part": "a snapshot that was being written",
}


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to look, and at what."""

    in_use: bool = False
    """A broker is writing to the directory."""
    looks_inside: bool = True
    """Read the records of every batch, and not only its header and checksum."""
    on_bytes: OnBytes = ignore_bytes


class PartitionCheck:
    """One partition; after `run` it knows where the log begins and ends."""

    def __init__(self, directory: str, options: VerifyOptions) -> None:
        self.directory = directory
        self.topic_id: Uuid | None = None
        self.start_offset = 0
        self.end_offset = 0
        self.is_complete = True
        """Whether the end of the log is known: no batch was damaged."""
        self._options = options
        self._bases: list[int] = []

    def run(self) -> Findings:
        """All findings of this partition."""
        names = sorted(os.listdir(self.directory))
        self._bases = [offset_of_name(name) for name in names if _is_segment_file(name, LOG_SUFFIX)]
        yield from self._check_names(names)
        yield from self._check_topic_id()
        epochs = EpochCheck(self.directory)
        yield from epochs.load()
        if not self._bases:
            yield Finding(self.directory, "the partition has no segment")
            self.is_complete = False
            return
        self.start_offset = self._bases[0]
        snapshots = [offset_of_name(name) for name in names if _is_segment_file(name, SNAPSHOT_SUFFIX)]
        producers = ProducerCheck(self.directory, self._bases[0], snapshots)
        yield from producers.load_first()
        for slot in range(len(self._bases)):
            try:
                yield from self._check_segment(slot, epochs, producers)
            except FileNotFoundError:  # retention deleted it after it was listed
                if not self._options.in_use:
                    raise
                producers.is_exact = False
        if self.is_complete:
            yield from epochs.end(self.end_offset)
            yield from producers.end(self.end_offset)

    # ---- one segment

    def _check_segment(self, slot: int, epochs: EpochCheck, producers: ProducerCheck) -> Findings:
        base_offset = self._bases[slot]
        is_last = slot == len(self._bases) - 1
        stem = os.path.join(self.directory, offset_name(base_offset))
        index_path, time_index_path = stem + OFFSET_INDEX_SUFFIX, stem + TIME_INDEX_SUFFIX
        index = read_offset_entries(index_path, base_offset) if os.path.exists(index_path) else None
        times = read_time_entries(time_index_path, base_offset) if os.path.exists(time_index_path) else None
        with BatchFile(stem + LOG_SUFFIX, self._options.on_bytes) as file:
            walk = SegmentWalk(
                file,
                base_offset,
                index_path,
                time_index_path,
                index.entries if index else (),
                times.entries if times else (),
                self._options.looks_inside,
            )
            yield from _check_length(index, index_path, is_last=is_last, is_empty=file.size == 0)
            yield from _check_length(times, time_index_path, is_last=is_last, is_empty=file.size == 0)
            yield from walk.check_order()
            last_timestamp = walk.time_entries[-1].timestamp if walk.time_entries else -1
            for each in walk.batches():
                if isinstance(each, Finding):
                    yield each
                    continue
                yield from epochs.add(each, file.path)
                producers.is_exact = producers.is_exact and not (walk.has_gaps or walk.is_damaged)
                yield from producers.add(each, file.path)
            yield from self._check_file_end(file, is_last=is_last)
            if walk.is_damaged or walk.has_gaps:
                producers.is_exact = False
        is_timed = times is not None and not walk.is_damaged and walk.time_entries
        if is_timed and not is_last and last_timestamp < walk.greatest_timestamp:
            problem = (
                f"the last entry says {last_timestamp}, but the segment reaches {walk.greatest_timestamp}"
            )
            yield Finding(walk.time_index_path, problem)
        yield from producers.check_txn_index(stem + TXN_INDEX_SUFFIX)
        yield from self._check_next_segment(slot, walk)
        self.end_offset = walk.next_offset
        self.is_complete = not walk.is_damaged

    def _check_file_end(self, file: BatchFile, *, is_last: bool) -> Findings:
        if not file.problem or (is_last and file.is_zero_filled):
            return
        if is_last and file.is_cut_off and self._options.in_use:
            return
        yield Finding(file.path, f"no whole batch begins here: {file.problem}", position=file.end)

    def _check_next_segment(self, slot: int, walk: SegmentWalk) -> Findings:
        if slot + 1 < len(self._bases) and walk.next_offset > self._bases[slot + 1]:
            problem = f"the segment reaches into the next one, which begins at {self._bases[slot + 1]}"
            yield Finding(walk.file.path, problem, offset=walk.next_offset - 1)

    # ---- the other files

    def _check_names(self, names: list[str]) -> Findings:
        for name in names:
            path = os.path.join(self.directory, name)
            leftover = next((what for suffix, what in _LEFTOVERS.items() if name.endswith(suffix)), None)
            if leftover is not None:
                if not self._options.in_use:
                    yield Finding(path, f"left over: {leftover}")
            elif _SEGMENT_FILE.match(name):
                if (
                    not name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX))
                    and offset_of_name(name) not in self._bases
                ):
                    yield Finding(path, "an index without a segment")
            elif name not in _SMALL_FILES and not _METADATA_SNAPSHOT.match(name):
                yield Finding(path, "not a file of a partition")

    def _check_topic_id(self) -> Findings:
        path = os.path.join(self.directory, PARTITION_METADATA)
        try:
            self.topic_id = read_partition_metadata(path)
        except (CorruptPartitionMetadata, UnicodeDecodeError) as error:
            yield Finding(path, f"the file cannot be read: {error}")
            return
        if self.topic_id is None:
            yield Finding(path, "the file is missing")


def _check_length(
    entries: Entries[OffsetEntry] | Entries[TimeEntry] | None,
    path: str,
    *,
    is_last: bool,
    is_empty: bool,
) -> Findings:
    if entries is None:
        if not is_empty:
            yield Finding(path, "the index is missing")
        return
    if entries.odd_bytes:
        yield Finding(path, f"{entries.odd_bytes} bytes at the end are no whole entry")
    if entries.zero_entries and not is_last:
        yield Finding(path, f"{entries.zero_entries} empty entries at the end, though the segment is rolled")


def _is_segment_file(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and _SEGMENT_FILE.match(name) is not None
