"""The batches of one segment, and the entries of its offset and time index that point at them.

The batches are walked once; the index entries, which ascend as the batches do, are held against them on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ottla.log_store.index_file import LARGEST_RELATIVE_OFFSET
from ottla.log_store.inspect.batch_file import BatchFile
from ottla.log_store.inspect.index_entries import OffsetEntry
from ottla.log_store.time_index import NO_TIMESTAMP, TimeEntry
from ottla.log_store.verify.finding import Finding, Findings
from ottla.wire.errors import KafkaError
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import iter_positions


@dataclass(slots=True)
class SegmentWalk:
    """One segment on its way through the checks, and what it turned out to hold."""

    file: BatchFile
    base_offset: int
    index_path: str
    time_index_path: str
    index_entries: Sequence[OffsetEntry] = ()
    time_entries: Sequence[TimeEntry] = ()
    looks_inside: bool = True
    """Whether the records of each batch are read."""

    next_offset: int = field(init=False)
    greatest_timestamp: int = NO_TIMESTAMP
    has_gaps: bool = False
    """Whether offsets are missing, as after compaction."""
    is_damaged: bool = False
    """Whether a batch could not be read, so that what follows from the batches is not known."""
    _index_slot: int = 0
    _time_slot: int = 0

    def __post_init__(self) -> None:
        self.next_offset = self.base_offset

    def batches(self) -> Iterator[BatchView | Finding]:
        """Every batch whose checksum is right, and what is wrong between them."""
        for position, view in self.file.batches():
            if not view.crc_matches():
                yield self._wrong(view, position, f"the CRC of the batch is not {view.crc:#010x}")
                self._pass_over(position, view)
                continue
            yield from self._check_header(position, view)
            yield from self._check_indexes(position, view)
            if self.looks_inside:
                yield from self._check_records(position, view)
            yield view
        yield from self._check_ends()

    def _check_header(self, position: int, view: BatchView) -> Findings:
        if view.last_offset_delta < 0:
            yield self._wrong(
                view, position, f"the batch ends {-view.last_offset_delta} before its beginning"
            )
        elif view.base_offset < self.next_offset:
            follows = (
                f"the batch begins below {self.next_offset}, the base offset of the segment"
                if self.next_offset == self.base_offset
                else f"the batch does not follow offset {self.next_offset - 1}"
            )
            yield self._wrong(view, position, follows)
        elif view.last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET:
            yield self._wrong(view, position, f"offset {view.last_offset} is out of the reach of the segment")
        else:
            self.has_gaps = self.has_gaps or view.base_offset != self.next_offset
            self.next_offset = view.next_offset
        self.greatest_timestamp = max(self.greatest_timestamp, view.max_timestamp)

    def _pass_over(self, position: int, view: BatchView) -> None:
        """Nothing in the header of a damaged batch can be relied on, nor what indexes say of it."""
        self.next_offset = max(self.next_offset, view.base_offset + 1)
        self.is_damaged = True
        self.time_entries = ()
        self.index_entries = [
            entry for entry in self.index_entries[self._index_slot :] if entry.position != position
        ]
        self._index_slot = 0

    def _check_records(self, position: int, view: BatchView) -> Findings:
        last = view.base_offset - 1
        greatest = NO_TIMESTAMP
        count = 0
        try:
            for offset, timestamp in iter_positions(view):
                if offset <= last or offset > view.last_offset:
                    yield self._wrong(
                        view,
                        position,
                        f"record {count} has offset {offset}, after {last} and in a batch to"
                        f" {view.last_offset}",
                    )
                    return
                last = offset
                greatest = max(greatest, timestamp)
                count += 1
        except KafkaError as error:
            yield self._wrong(view, position, f"the records cannot be read: {error.detail}")
            return
        if count and greatest != view.max_timestamp:
            problem = f"the greatest timestamp of the records is {greatest}, not {view.max_timestamp}"
            yield self._wrong(view, position, problem)
        self.has_gaps = self.has_gaps or count != view.last_offset_delta + 1

    # ---- indexes

    def check_order(self) -> Findings:
        """Whether the entries of both indexes ascend; those of an index that does not are not followed."""
        offsets = [tuple(entry) for entry in self.index_entries]
        yield from self._order(self.index_path, "entry", offsets)
        if _first_not_ascending(offsets) is not None:
            self.index_entries = ()
        times = [tuple(entry) for entry in self.time_entries]
        yield from self._order(self.time_index_path, "entry", times)
        if _first_not_ascending(times) is not None:
            self.time_entries = ()

    def _order(self, path: str, word: str, entries: Sequence[tuple[int, ...]]) -> Findings:
        slot = _first_not_ascending(entries)
        if slot is not None:
            yield Finding(path, f"{word} {slot} {entries[slot]} does not follow {entries[slot - 1]}")

    def _check_indexes(self, position: int, view: BatchView) -> Findings:
        entries = self.index_entries
        while self._index_slot < len(entries) and entries[self._index_slot].position <= position:
            entry = entries[self._index_slot]
            self._index_slot += 1
            if entry.position < position:
                yield self._lost_entry(entry)
            elif entry.offset != view.last_offset:
                yield Finding(
                    self.index_path,
                    f"the entry for byte {position} says {entry.offset}, but the batch there ends at"
                    f" {view.last_offset}",
                    offset=entry.offset,
                )
        times = self.time_entries
        while self._time_slot < len(times) and times[self._time_slot].offset <= view.last_offset:
            timed = times[self._time_slot]
            self._time_slot += 1
            if timed.offset < view.base_offset:
                yield Finding(
                    self.time_index_path, "the entry names an offset that is not there", timed.offset
                )
            elif not timed.timestamp == view.max_timestamp == self.greatest_timestamp:
                yield Finding(
                    self.time_index_path,
                    f"the entry says {timed.timestamp}, but the batch has {view.max_timestamp} and the greatest"
                    f" timestamp so far is {self.greatest_timestamp}",
                    offset=timed.offset,
                )

    def _check_ends(self) -> Findings:
        if self.file.problem and not self.file.is_zero_filled:
            self.is_damaged = True
            self.time_entries = ()
            self.index_entries = [
                entry for entry in self.index_entries[self._index_slot :] if entry.position < self.file.end
            ]
            self._index_slot = 0
        for entry in self.index_entries[self._index_slot :]:
            yield self._lost_entry(entry)
        times = self.time_entries[self._time_slot :]
        for timed in times:
            yield Finding(self.time_index_path, "the entry names an offset beyond the segment", timed.offset)

    def _lost_entry(self, entry: OffsetEntry) -> Finding:
        problem = f"the entry points at byte {entry.position} of the log, where no batch begins"
        return Finding(self.index_path, problem, offset=entry.offset)

    def _wrong(self, view: BatchView, position: int, problem: str) -> Finding:
        return Finding(self.file.path, problem, offset=view.base_offset, position=position)


def _first_not_ascending(entries: Sequence[tuple[int, ...]]) -> int | None:
    for slot in range(1, len(entries)):
        if any(after <= before for before, after in zip(entries[slot - 1], entries[slot], strict=True)):
            return slot
    return None
