"""The leader epochs: those in the batches against those in `leader-epoch-checkpoint`."""

from __future__ import annotations

import itertools
import os
from bisect import bisect_right

from ottla.log_store.checkpoints import CorruptCheckpoint, read_checkpoint
from ottla.log_store.leader_epochs import FILE_NAME
from ottla.log_store.verify.finding import Finding, Findings
from ottla.wire.records.header import BatchView


class EpochCheck:
    """The epochs of one partition, and the batches seen so far."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, FILE_NAME)
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._is_usable = False
        self._reported: set[tuple[int, int | None]] = set()
        self._last_epoch = -1

    def load(self) -> Findings:
        """Read the file."""
        if not os.path.exists(self.path):
            return  # Kafka makes it with the first epoch
        try:
            rows = [(int(epoch), int(start)) for epoch, start in read_checkpoint(self.path)]
        except (CorruptCheckpoint, ValueError) as error:
            yield Finding(self.path, f"the file cannot be read: {error}")
            return
        for before, after in itertools.pairwise(rows):
            if after[0] <= before[0] or after[1] <= before[1]:
                problem = f"epoch {after[0]} at {after[1]} does not follow epoch {before[0]} at {before[1]}"
                yield Finding(self.path, problem, offset=after[1])
                return
        self._epochs = [epoch for epoch, _ in rows]
        self._starts = [start for _, start in rows]
        self._is_usable = True

    def add(self, view: BatchView, path: str) -> Findings:
        """Hold a batch against the file. Each pair of epochs that disagree is told once."""
        epoch = view.partition_leader_epoch
        if epoch < self._last_epoch:
            problem = f"leader epoch {epoch} comes after {self._last_epoch}"
            yield Finding(path, problem, offset=view.base_offset)
        self._last_epoch = max(self._last_epoch, epoch)
        if not self._is_usable or epoch < 0:
            return
        slot = bisect_right(self._starts, view.base_offset)
        if slot == 0 and self._starts:
            return  # below the start of the log
        told = self._epochs[slot - 1] if slot else None
        if told != epoch and (epoch, told) not in self._reported:
            self._reported.add((epoch, told))
            problem = f"the batch has leader epoch {epoch}, the file says {'none' if told is None else told}"
            yield Finding(self.path, problem, offset=view.base_offset)

    def end(self, log_end_offset: int) -> Findings:
        """An epoch may begin where the log ends, and not beyond."""
        for epoch, start in zip(self._epochs, self._starts, strict=True):
            if start > log_end_offset:
                problem = f"epoch {epoch} begins beyond the end of the log, {log_end_offset}"
                yield Finding(self.path, problem, offset=start)
