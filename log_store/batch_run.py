"""Small batches of clients that are written in one go: one write costs little more for many of them than for one."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.wire.records.header import BatchView, patch

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

    def add(self, batch: memoryview, head: BatchHead) -> None:
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
