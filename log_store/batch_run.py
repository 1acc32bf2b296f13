"""Small batches of clients that are written in one go: one write costs little more for many of them than for one."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.wire.records.header import BatchView, patch


class BatchRun:
    """Batches one after the other, as they will lie in the log. Each was found to be ordinary by whoever adds it: it
    breaks no rule of its topic, its checksum is right, and it belongs to no transaction."""

    __slots__ = ("data", "greatest_timestamp", "has_producers", "heads")

    def __init__(self) -> None:
        self.data = bytearray()
        self.heads: list[
            tuple[int, int, int]
        ] = []  # of each: where it begins, its records, its greatest timestamp
        self.greatest_timestamp = -1
        self.has_producers = False  # some of them have a producer id

    def add(
        self, batch: memoryview, records: int, greatest_timestamp: int, *, has_producer: bool = False
    ) -> None:
        """Copy a batch to the end."""
        self.heads.append((len(self.data), records, greatest_timestamp))
        self.data += batch
        if greatest_timestamp > self.greatest_timestamp:
            self.greatest_timestamp = greatest_timestamp
        if has_producer:
            self.has_producers = True

    def number(self, base_offset: int, leader_epoch: int) -> list[int]:
        """Give the batches their offsets; returns the first offset of each, and the one after them all."""
        data = self.data
        offsets = []
        for position, records, _ in self.heads:
            patch(data, position, base_offset, leader_epoch)
            offsets.append(base_offset)
            base_offset += records
        offsets.append(base_offset)
        return offsets

    def batches(self) -> Iterator[BatchView]:
        """Each by itself."""
        view = memoryview(self.data)
        ends = [position for position, _, _ in self.heads[1:]] + [len(view)]
        for (position, _, _), end in zip(self.heads, ends, strict=True):
            yield BatchView(view[position:end])
