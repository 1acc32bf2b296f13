"""The metadata log on disk: the segments of `__cluster_metadata-0`, their indexes and leader epochs.

The files are those of any partition, but the log has one writer, no clients, and is read once, at start. It
is opened in two steps: `replay` only reads and notes where the valid batches end; `begin_appending` then
cuts off what a crash left behind them, makes the last segment's indexes anew and takes the log over.
Whoever refuses the log between the two has changed nothing.
"""

import logging
import os
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ottla.log_store.checkpoints import CorruptCheckpoint
from ottla.log_store.files import DELETED_SUFFIX, LOG_SUFFIX, OS_FILE_SYSTEM, FileSystem, fsync_path
from ottla.log_store.leader_epochs import FILE_NAME as EPOCHS_FILE_NAME
from ottla.log_store.leader_epochs import LeaderEpochs
from ottla.log_store.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE_NAME
from ottla.log_store.partition_metadata import write_partition_metadata
from ottla.log_store.scan import Scan, damage_within
from ottla.log_store.segment import Segment
from ottla.metadata.errors import MetadataError
from ottla.wire.records.header import BatchView, CorruptBatch
from ottla.wire.uuids import ONE_UUID

DIRECTORY_NAME = "__cluster_metadata-0"
METADATA_TOPIC_ID = ONE_UUID
INDEX_BYTES = 10 << 20

logger = logging.getLogger("ottla.metadata")

_LEFTOVERS = (DELETED_SUFFIX, ".part", ".tmp")
"""What a crash leaves of a deletion or of a file that was being written."""

_SEGMENT_NAME = re.compile(r"(\d{20})\.log\Z")


class MetadataLog:
    """The segments of the metadata log, oldest first; the last one takes the appends."""

    def __init__(
        self, directory: Path, *, segment_bytes: int, now_ms: int, fs: FileSystem = OS_FILE_SYSTEM
    ) -> None:
        self.directory = directory
        self._fs = fs
        self._names_changed = False  # segments came since the directory was synced
        self.segment_bytes = segment_bytes
        self.segments: list[Segment] = []
        if directory.is_dir():
            for base_offset in _segment_offsets(directory):
                self.segments.append(
                    Segment.open(fs, str(directory), base_offset, index_bytes=INDEX_BYTES, now_ms=now_ms)
                )
        self.end_offset = self.start_offset
        self.last_epoch = 0
        self.last_timestamp_ms = -1
        self._valid_bytes = 0
        self._epochs = LeaderEpochs(fs, str(directory / EPOCHS_FILE_NAME))

    @property
    def start_offset(self) -> int:
        """The first offset that the log holds."""
        return self.segments[0].base_offset if self.segments else 0

    # Reading -----------------------------------------------------------------------------------------------

    def replay(self, from_offset: int) -> Iterator[BatchView]:
        """Every valid batch from the one that holds `from_offset`; sets where the log ends."""
        if self.segments and from_offset < self.start_offset:
            raise MetadataError(
                f"{self.directory} begins at offset {self.start_offset},"
                " but no snapshot covers what was before."
            )
        for segment, following in zip_longest(self.segments, self.segments[1:]):
            if following is not None and following.base_offset <= from_offset:
                continue
            yield from self._replay_segment(segment, from_offset, is_last=following is None)
            if following is not None and self.end_offset != following.base_offset:
                raise MetadataError(
                    f"{segment.file.path} is damaged: it ends at offset {self.end_offset},"
                    f" but the next segment begins at {following.base_offset}."
                )

    def _replay_segment(self, segment: Segment, from_offset: int, *, is_last: bool) -> Iterator[BatchView]:
        self.end_offset = segment.base_offset
        self._valid_bytes = 0
        try:
            for position, view in segment.read_batches(0):
                if view.next_offset > from_offset or is_last:
                    if view.base_offset != self.end_offset or not view.crc_matches():
                        break
                    self.last_epoch = max(self.last_epoch, view.partition_leader_epoch)
                    self.last_timestamp_ms = max(self.last_timestamp_ms, view.max_timestamp)
                self.end_offset = view.next_offset
                self._valid_bytes = position + view.size_in_bytes
                if view.next_offset > from_offset:
                    yield view
        except CorruptBatch:
            logger.debug("no batch begins path=%s position=%d", segment.file.path, self._valid_bytes)
        if is_last and segment.size > self._valid_bytes:
            self._check_only_the_end_is_torn(segment)

    def _check_only_the_end_is_torn(self, segment: Segment) -> None:
        """Every change is durable before the next is written: what lies before a valid batch was no torn write.
        To cut there would forget topics, whose data would then belong to nobody."""
        damage = damage_within(
            segment, Scan(self._valid_bytes, self.end_offset, "no valid batch begins there")
        )
        if damage is not None:
            raise MetadataError(f"{damage}; restore it from a copy, or cut it there to give up what follows.")

    # Writing -----------------------------------------------------------------------------------------------

    def begin_appending(self, snapshot_end_offset: int, now_ms: int) -> None:
        """Take the log over: cut a torn tail, make the indexes of the last segment anew.

        A log that ends before `snapshot_end_offset` is replaced by an empty one that begins there.
        """
        if not self.directory.is_dir():
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            self._fs.mkdir(str(self.directory))
            fsync_path(self._fs, str(self.directory.parent))
        self._remove([entry.path for entry in os.scandir(self.directory) if entry.name.endswith(_LEFTOVERS)])
        if not (self.directory / PARTITION_METADATA_FILE_NAME).exists():
            path = str(self.directory / PARTITION_METADATA_FILE_NAME)
            write_partition_metadata(self._fs, path, METADATA_TOPIC_ID, sync=True)
        try:
            self._epochs.load()
        except CorruptCheckpoint as error:
            raise MetadataError(f"The leader epochs of the metadata log cannot be read: {error}.") from error
        if self.end_offset < snapshot_end_offset:
            for segment in self.segments:
                self._remove(segment.mark_deleted())
            self.segments = []
            self._epochs.clear()
            self.end_offset = snapshot_end_offset
        if self.segments:
            self._mend(self.segments[-1])
        else:
            self._add_segment(self.end_offset, now_ms)
        self._epochs.truncate_from_end(self.end_offset)

    def _mend(self, segment: Segment) -> None:
        torn_bytes = segment.size - self._valid_bytes
        if torn_bytes:
            logger.warning("cut a torn tail path=%s bytes=%d", segment.file.path, torn_bytes)
            segment.file.truncate(self._valid_bytes)
            segment.file.fsync()
        segment.reset_indexes()
        for position, view in segment.read_batches(0):
            segment.note_batch(
                position, view.size_in_bytes, view.base_offset, view.last_offset, view.max_timestamp
            )
            if view.partition_leader_epoch > self._epochs.latest_epoch:
                self._epochs.assign(view.partition_leader_epoch, view.base_offset)

    def append(self, batch: bytes, *, last_offset: int, epoch: int, timestamp_ms: int) -> None:
        """Write one batch at the end; OSError when the disk refuses, and then nothing was written."""
        segment = self.segments[-1]
        if segment.size and segment.size + len(batch) > self.segment_bytes:
            segment = self.roll(timestamp_ms)
        segment.append(batch, self.end_offset, last_offset, timestamp_ms)
        if epoch > self._epochs.latest_epoch:
            self._epochs.assign(epoch, self.end_offset)
        self.end_offset = last_offset + 1
        self.last_epoch = epoch
        self.last_timestamp_ms = timestamp_ms

    def roll(self, now_ms: int) -> Segment:
        """Close the last segment and begin a new one."""
        last = self.segments[-1]
        last.flush()
        last.become_inactive()
        return self._add_segment(self.end_offset, now_ms)

    def flush(self) -> None:
        """Make everything appended so far durable."""
        self.segments[-1].file.fsync()
        names_changed, self._names_changed = self._names_changed, False
        if self._epochs.flush() or names_changed:
            fsync_path(self._fs, str(self.directory))

    def delete_before(self, offset: int) -> None:
        """Remove the segments whose records all lie below `offset`, which a snapshot covers."""
        while len(self.segments) > 1 and self.segments[1].base_offset <= offset:
            self._remove(self.segments.pop(0).mark_deleted())

    def close(self) -> None:
        """Trim the files and let go of them."""
        for segment in self.segments:
            segment.close()
        self.segments = []

    def release(self) -> None:
        """Let go of the files without writing to them."""
        for segment in self.segments:
            segment.release()
        self.segments = []

    def _add_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = Segment.create(
            self._fs, str(self.directory), base_offset, index_bytes=INDEX_BYTES, now_ms=now_ms
        )
        self.segments.append(segment)
        self._names_changed = True
        return segment

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            self._fs.unlink(path)


def _segment_offsets(directory: Path) -> list[int]:
    matches = (_SEGMENT_NAME.match(name) for name in os.listdir(directory) if name.endswith(LOG_SUFFIX))
    return sorted(int(match[1]) for match in matches if match)
