"""The metadata of this node on disk: its identity, the metadata log with its snapshots, and the image of
both.

Alone, Ottla is its own quorum: each start is a new epoch that it leads, written down in `quorum-state`
before a LeaderChange record opens it in the log, as a Kafka controller does. A change goes through three
steps, so that the middle one can run in a worker thread: `append` writes one atomic batch, `flush` makes it
durable, `apply_appended` folds it into the image. Nobody sees a change before it is durable. Whoever plans
a change plans it on the image as it is, so changes are made one after the other.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from ottla.metadata.control_records import KRaftVersionRecord, LeaderChangeMessage, Voter
from ottla.metadata.errors import MetadataError
from ottla.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    LATEST_METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
    SUPPORTED_FEATURES,
    supports_transactions,
)
from ottla.metadata.features import METADATA_VERSION as METADATA_VERSION_FEATURE
from ottla.metadata.image import Foldable, MetadataDelta, MetadataImage, prepared
from ottla.metadata.image.snapshot import image_records
from ottla.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from ottla.metadata.store.batches import (
    MAX_RECORDS_PER_BATCH,
    DecodedBatch,
    chunked,
    decode_batch,
    metadata_batch,
)
from ottla.metadata.store.log import DIRECTORY_NAME, MetadataLog
from ottla.metadata.store.meta_properties import FILE_NAME as META_PROPERTIES
from ottla.metadata.store.meta_properties import Identity, MetaProperties, identify, write_meta_properties
from ottla.metadata.store.quorum_state import read_quorum_state, write_quorum_state
from ottla.metadata.store.snapshots import (
    BOOTSTRAP_FILE_NAME,
    SnapshotId,
    list_snapshots,
    read_snapshot,
    write_snapshot,
)
from ottla.metadata.voters_record import VotersRecord
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_control_batch
from ottla.wire.schema import encode
from ottla.wire.uuids import Uuid

logger = logging.getLogger("ottla.metadata")

MAX_BATCH_BYTES = 8 << 20
SNAPSHOTS_KEPT = 2
WORTH_A_SNAPSHOT_AT_CLOSE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """What the configuration says about the metadata log, by Kafka's names."""

    max_bytes_between_snapshots: int = 20 << 20
    """metadata.log.max.record.bytes.between.snapshots"""
    segment_bytes: int = 1 << 30
    """metadata.log.segment.bytes"""
    min_insync_replicas: int = 1
    """min.insync.replicas, which a new cluster with eligible leader replicas has as a config of its own"""


class MetadataStore:
    """Owns the files and the image. `open` makes one; `close` ends it."""

    def __init__(
        self,
        identity: Identity,
        log_directories: Sequence[Path],
        metadata_directory: Path,
        log: MetadataLog,
        settings: MetadataSettings,
    ) -> None:
        self.cluster_id = identity.cluster_id
        self.node_id = identity.node_id
        self.directory_ids = {each: identity.directory_ids[each] for each in log_directories}
        """The id of each log directory."""
        self.image = MetadataImage()
        self.epoch = 0
        self.kraft_version = 0
        self._metadata_directory = metadata_directory
        self._log = log
        self._settings = settings
        self._voters: VotersRecord | None = None
        self._snapshot: SnapshotId | None = None
        self._bytes_since_snapshot = 0
        self._appended: list[tuple[int, Sequence[Foldable]]] = []
        self._flushed_offset = -1

    @property
    def next_offset(self) -> int:
        """The offset that the next record will have."""
        return self._log.end_offset

    @property
    def metadata_directory(self) -> Path:
        """The log directory that holds the metadata log."""
        return self._metadata_directory

    # Opening -----------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        log_directories: Sequence[Path],
        *,
        now_ms: int,
        new_uuid: Callable[[], Uuid],
        node_id: int | None = None,
        cluster_id: str | None = None,
        metadata_directory: Path | None = None,
        settings: MetadataSettings | None = None,
    ) -> Self:
        """Take over the metadata in these directories, or make it if there is none.

        MetadataError, one sentence, if they cannot be ours; then nothing in them has changed.
        """
        settings = settings or MetadataSettings()
        directory = metadata_directory or log_directories[0]
        identity = identify(list(dict.fromkeys([directory, *log_directories])), node_id, cluster_id, new_uuid)
        log_directory = directory / DIRECTORY_NAME
        if directory in identity.unmarked and log_directory.exists():
            raise MetadataError(f"{directory} holds a metadata log, but no {META_PROPERTIES}.")
        log = MetadataLog(log_directory, segment_bytes=settings.segment_bytes, now_ms=now_ms)
        store = cls(identity, log_directories, directory, log, settings)
        try:
            store._load(log_directory)
            store._check_is_ours(log_directory)
            bootstrap = store._read_bootstrap()
        except BaseException:
            log.release()
            raise
        store._mark_directories(identity, bootstrap, now_ms)
        store._lead(log_directory, now_ms)
        store._finish_what_was_left(bootstrap, now_ms)
        return store

    def _load(self, log_directory: Path) -> None:
        if not log_directory.is_dir():
            return
        snapshots = list_snapshots(log_directory)
        if snapshots:
            self._snapshot = snapshots[-1]
            for batch in read_snapshot(log_directory / self._snapshot.file_name):
                self._fold(batch, skip_below=0)
            self.image.last_offset = self._snapshot.end_offset - 1
        from_offset = 0 if self._snapshot is None else self._snapshot.end_offset
        for view in self._log.replay(from_offset):
            self._fold(decode_batch(view), skip_below=from_offset)
            self.image.last_offset = view.last_offset
            self._bytes_since_snapshot += view.size_in_bytes

    def _fold(self, batch: DecodedBatch, *, skip_below: int) -> None:
        for message in batch.control:
            if isinstance(message, KRaftVersionRecord):
                self.kraft_version = message.k_raft_version
            elif isinstance(message, VotersRecord):
                self._voters = message
        for offset, record in enumerate(batch.records, batch.base_offset):
            if offset >= skip_below:
                self.image.apply(record)

    def _check_is_ours(self, log_directory: Path) -> None:
        state = read_quorum_state(log_directory)
        self.epoch = max(
            0 if state is None else state.leader_epoch,
            self._log.last_epoch,
            0 if self._snapshot is None else self._snapshot.epoch,
        )
        if self._voters is not None:
            voters = {voter.voter_id for voter in self._voters.voters}
        else:
            voters = set(() if state is None or state.voters is None else state.voters)
        if voters - {self.node_id}:
            raise MetadataError(
                f"{log_directory} belongs to a controller quorum of nodes {_listed(voters)},"
                f" which node {self.node_id} cannot lead alone."
            )
        others = {
            broker_id
            for broker_id, registration in self.image.brokers.items()
            if broker_id != self.node_id and not registration.fenced
        }
        if others:
            raise MetadataError(
                f"{log_directory} belongs to a cluster in which brokers {_listed(others)} are active too."
            )
        level = self.image.metadata_version
        if level and not MINIMUM_METADATA_VERSION <= level <= LATEST_METADATA_VERSION:
            raise MetadataError(
                f"{log_directory} has metadata.version {level}, but only"
                f" {MINIMUM_METADATA_VERSION} to {LATEST_METADATA_VERSION} are known."
            )

    def _read_bootstrap(self) -> list[MetadataRecord]:
        path = self._metadata_directory / BOOTSTRAP_FILE_NAME
        if self.image.metadata_version or not path.exists():
            return [
                FeatureLevelRecord(name=name, feature_level=feature.default_version)
                for name, feature in SUPPORTED_FEATURES.items()
                if feature.default_version > 0
            ]
        return [record for batch in read_snapshot(path) for record in batch.records]

    def _mark_directories(self, identity: Identity, bootstrap: list[MetadataRecord], now_ms: int) -> None:
        self._metadata_directory.mkdir(parents=True, exist_ok=True)
        checkpoint = self._metadata_directory / BOOTSTRAP_FILE_NAME
        if self._metadata_directory in identity.unmarked and not checkpoint.exists():
            write_snapshot(
                checkpoint,
                bootstrap,
                epoch=0,
                last_contained_log_ms=0,
                now_ms=now_ms,
                metadata_version=LATEST_METADATA_VERSION,
            )
        for directory in identity.unmarked:
            directory.mkdir(parents=True, exist_ok=True)
            properties = MetaProperties(
                identity.cluster_id, identity.node_id, identity.directory_ids[directory]
            )
            write_meta_properties(directory, properties, now_ms)

    def _lead(self, log_directory: Path, now_ms: int) -> None:
        """Open a new epoch."""
        snapshot_end = 0 if self._snapshot is None else self._snapshot.end_offset
        self._log.begin_appending(snapshot_end, now_ms)
        self.epoch += 1
        write_quorum_state(log_directory, self.node_id, self.epoch, self.kraft_version)
        voters = [Voter(voter_id=self.node_id)]
        change = LeaderChangeMessage(version=0, leader_id=self.node_id, voters=voters, granting_voters=voters)
        offset = self._log.end_offset
        batch = build_control_batch(
            ControlType.LEADER_CHANGE,
            encode(change, 0),
            timestamp=now_ms,
            base_offset=offset,
            partition_leader_epoch=self.epoch,
        )
        self._log.append(batch, last_offset=offset, epoch=self.epoch, timestamp_ms=now_ms)
        self._log.flush()
        self.image.last_offset = offset

    def _finish_what_was_left(self, bootstrap: list[MetadataRecord], now_ms: int) -> None:
        if self.image.in_transaction:
            self.commit([AbortTransactionRecord(reason="the node restarted")], now_ms)
        if self.image.metadata_version:
            return
        levels = {
            record.name: record.feature_level
            for record in bootstrap
            if isinstance(record, FeatureLevelRecord)
        }
        if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION):
            from ottla.config.resources import ResourceType  # only new directories need it

            value = str(self._settings.min_insync_replicas)
            bootstrap = [*bootstrap, ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", value)]
        if supports_transactions(levels.get(METADATA_VERSION_FEATURE, LATEST_METADATA_VERSION)):
            bootstrap = [BeginTransactionRecord(name="Bootstrap records"), *bootstrap, EndTransactionRecord()]
        self.commit(bootstrap, now_ms)

    # Changing ----------------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord], now_ms: int) -> int:
        """Write records at the end of the log; returns the offset of the last one.

        They are one atomic batch, unless they are more than any planned change has (MAX_RECORDS_PER_BATCH).
        OSError when the disk refuses. Nothing else is true of them until `flush` and `apply_appended`.
        """
        for chunk in chunked(records, MAX_RECORDS_PER_BATCH):
            offset = self._log.end_offset
            batch = metadata_batch(
                chunk,
                base_offset=offset,
                epoch=self.epoch,
                now_ms=now_ms,
                metadata_version=self.image.metadata_version or LATEST_METADATA_VERSION,
            )
            if len(batch) > MAX_BATCH_BYTES:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
                )
            last_offset = offset + len(chunk) - 1
            foldable = prepared(chunk)
            self._log.append(batch, last_offset=last_offset, epoch=self.epoch, timestamp_ms=now_ms)
            self._appended.append((last_offset, foldable))
            self._bytes_since_snapshot += len(batch)
        return self._log.end_offset - 1

    def flush(self) -> None:
        """Make what was appended durable; may run in a worker thread."""
        offset = self._log.end_offset - 1
        self._log.flush()
        self._flushed_offset = offset

    def write(self, records: Sequence[MetadataRecord], now_ms: int) -> None:
        """Append and flush; runs in a worker thread, where encoding very many records keeps nobody waiting."""
        self.append(records, now_ms)
        self.flush()

    def apply_appended(self) -> MetadataDelta:
        """Fold everything durable into the image; the delta says what changed."""
        delta = MetadataDelta()
        while self._appended and self._appended[0][0] <= self._flushed_offset:
            last_offset, records = self._appended.pop(0)
            for record in records:
                self.image.apply(record, delta)
            self.image.last_offset = last_offset
        return delta

    def commit(self, records: Sequence[MetadataRecord], now_ms: int) -> MetadataDelta:
        """Append, flush and apply in one go."""
        self.append(records, now_ms)
        self.flush()
        return self.apply_appended()

    # Snapshots ---------------------------------------------------------------------------------------------

    @property
    def snapshot_due(self) -> bool:
        """Has the log grown enough since the last snapshot?"""
        return self._bytes_since_snapshot >= self._settings.max_bytes_between_snapshots

    def write_snapshot(self, now_ms: int) -> SnapshotId:
        """Write the image down beside the log, then forget what two snapshots cover.

        The image must not change meanwhile.
        """
        directory = self._log.directory
        snapshot = SnapshotId(self.image.last_offset + 1, self.epoch)
        quorum: list[KRaftVersionRecord | VotersRecord] = []
        if self.kraft_version:
            quorum.append(KRaftVersionRecord(version=0, k_raft_version=self.kraft_version))
            if self._voters is not None:
                quorum.append(self._voters)
        write_snapshot(
            directory / snapshot.file_name,
            image_records(self.image),
            epoch=snapshot.epoch,
            last_contained_log_ms=self._log.last_timestamp_ms,
            now_ms=now_ms,
            metadata_version=self.image.metadata_version,
            quorum=quorum,
        )
        if self._bytes_since_snapshot >= self._settings.max_bytes_between_snapshots:
            self._log.roll(now_ms)
        self._snapshot = snapshot
        self._bytes_since_snapshot = 0
        kept = list_snapshots(directory)
        for old in kept[:-SNAPSHOTS_KEPT]:
            os.unlink(directory / old.file_name)
        self._log.delete_before(kept[-SNAPSHOTS_KEPT:][0].end_offset)
        logger.info("metadata snapshot written name=%s", snapshot.file_name)
        return snapshot

    def close(self, now_ms: int) -> None:
        """Let go of the files; a log that grew leaves a snapshot, so that the next start reads less."""
        if self._bytes_since_snapshot >= WORTH_A_SNAPSHOT_AT_CLOSE_BYTES and not self._appended:
            self.write_snapshot(now_ms)
        self._log.flush()
        self._log.close()

    def release(self) -> None:
        """Let go of the files without writing to them, as a crash would."""
        self._log.release()


def _listed(ids: set[int]) -> str:
    return ", ".join(str(each) for each in sorted(ids))
