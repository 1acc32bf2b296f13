"""Small batches of clients that are written in one go: one write costs little more for many of them than for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.log_store.durability import failed
from ottla.wire.records.header import BatchView, patch

if TYPE_CHECKING:
    from ottla.log_store.log import Log

# Of a batch: how many records, the greatest timestamp, producer id and epoch, the first sequence.
BatchHead = tuple[int, int, int, int, int]


class BatchRun:
    """Batches one after the other, as they will lie in the log. Each was found to be ordinary by whoever adds it: it
    breaks no rule of its topic, its checksum is right, and it belongs to no transaction."""

    __slots__ = ("data", "greatest_timestamp", "has_producers", "heads", "positions", "records")

    def __init__(self) -> None:
        self.data = bytearray()
        self.heads: list[BatchHead] = []
        self.positions: list[int] = []
        self.records = 0
        self.greatest_timestamp = -1
        self.has_producers = False  # some of them have a producer id

    def add(self, batch: memoryview | bytearray, head: BatchHead) -> None:
        """Copy a batch to the end."""
        self.positions.append(len(self.data))
        self.heads.append(head)
        self.data += batch
        records, timestamp, producer_id, _, _ = head
        self.records += records
        if timestamp > self.greatest_timestamp:
            self.greatest_timestamp = timestamp
        if producer_id >= 0:
            self.has_producers = True

    def number(self, base_offset: int, leader_epoch: int) -> list[int]:
        """Give the batches their offsets; returns the first offset of each, and the one after them all."""
        data = self.data
        offsets = [base_offset]
        for position, head in zip(self.positions, self.heads, strict=True):
            patch(data, position, base_offset, leader_epoch)
            base_offset += head[0]
            offsets.append(base_offset)
        return offsets

    def batches(self) -> Iterator[BatchView]:
        """Each by itself."""
        view = memoryview(self.data)
        for position, end in zip(self.positions, [*self.positions[1:], len(view)], strict=True):
            yield BatchView(view[position:end])


def append_run(log: Log, run: BatchRun, leader_epoch: int, now_ms: int) -> list[int] | None:
    """Append all batches of a run in one write; returns the first offset of each. None says that something has to be
    done between them, and nothing has happened: each is to be appended by itself. KafkaError if the disk refused."""
    segment = log.segments[-1]
    epochs = log.leader_epochs
    end_offset = log.log_end_offset + run.records
    producers = log.producers.next_of_run(run) if run.has_producers else ()
    if (
        log.failure is not None
        or producers is None
        or leader_epoch != epochs.latest_epoch
        or epochs.is_unwritten
        or not segment.has_room_for(run, end_offset - 1, log.segment_bytes)
        or segment.waited_for_roll_ms(now_ms, run.greatest_timestamp)
        > log.segment_ms - segment.roll_jitter_ms
    ):
        return None
    offsets = run.number(log.log_end_offset, leader_epoch)
    try:
        segment.append_run(run, offsets)
    except OSError as error:
        raise failed(log, "append", error) from error
    log.log_end_offset = log.producers.map_end_offset = end_offset
    for slot, entry in enumerate(producers):
        if entry is not None:
            records, timestamp, _, _, sequence = run.heads[slot]
            base_offset = offsets[slot]
            entry.add_next(
                sequence, sequence + records - 1, base_offset, base_offset + records - 1, timestamp
            )
    del offsets[-1]
    return offsets
