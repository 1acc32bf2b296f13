"""A log directory: the partitions on one disk, and the files that are about all of them.

    .lock                                 held while a broker uses the directory
    .kafka_cleanshutdown                  {"version":0,"brokerEpoch":-1}, there after a clean stop only
    meta.properties                       cluster, node and directory id (written by the metadata room)
    recovery-point-offset-checkpoint      and three more offset checkpoints (see checkpoints)
    topic-N/                              a partition (see naming for the suffixes)

The lock is a POSIX record lock, as Java's is, so it keeps out other Ottlas and a real Kafka. Such locks do not
see each other inside one process, so the directories that this process uses are also kept in a set.
Directories that are no partition are left alone; those that wait for deletion are emptied by `purge_deleted`.

What the disk refuses, be it that it is full, fails the whole directory, as in Kafka: `failure` tells why, its
logs take nothing any more, nothing is written to it, and the next start recovers what is there.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.config.topic_config import TopicConfig
from ottla.log_store.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CorruptCheckpoint,
    TopicPartition,
    read_offsets,
    write_offsets,
)
from ottla.log_store.deletion import DeletedFile
from ottla.log_store.durability import OUT_OF_DESCRIPTORS, failed
from ottla.log_store.files import OS_FILE_SYSTEM, FileSystem, fsync_path, unlink_if_there, write_file
from ottla.log_store.leader_epochs import UNDEFINED_EPOCH
from ottla.log_store.log import Log
from ottla.log_store.naming import (
    deleted_directory,
    is_deleted_directory,
    parse_partition_directory,
    partition_directory,
    stray_directory,
)
from ottla.log_store.producer_state import PRODUCER_ID_EXPIRATION_MS
from ottla.log_store.recovery import DamagedLog
from ottla.wire.errors import KafkaError
from ottla.wire.uuids import Uuid

if TYPE_CHECKING:
    from concurrent.futures import Future

logger = logging.getLogger("ottla.log_store")

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
METADATA_LOG: Final = "__cluster_metadata-0"

DEFAULT_RECOVERY_THREADS: Final = 2
_CLOSING_THREADS: Final = 8
_PROGRESS_SECONDS: Final = 2.0
_CHECKPOINTS: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
_locked_here: set[str] = set()


class DirectoryInUse(Exception):
    """Another broker holds the lock of a log directory."""


class LogDirectory:
    """One of log.dirs. Opening it takes the lock, `close` writes everything down and gives it back."""

    def __init__(
        self,
        path: Path | str,
        *,
        fs: FileSystem = OS_FILE_SYSTEM,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> None:
        self.path = os.path.abspath(path)
        self.fs = fs
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.logs: dict[TopicPartition, Log] = {}
        self.failed: dict[str, Exception] = {}
        self.failure: OSError | None = None
        self.on_failure: Callable[[LogDirectory], None] = _nobody_cares
        if not os.path.isdir(self.path):
            os.makedirs(self.path)
            fsync_path(fs, os.path.dirname(self.path))
        os.listdir(self.path)  # a directory that cannot be read is refused now
        self._lock_fd = _lock(os.path.join(self.path, LOCK_FILE))
        self.was_clean, self.last_broker_epoch = self._read_clean_shutdown()
        self._deleted: list[DeletedFile] = []
        self._checkpoint_lock = threading.Lock()
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self._carried_over: dict[str, dict[TopicPartition, int]] = {}  # of partitions in `failed`

    # ---- start and stop

    def open_logs(
        self,
        config_for: Callable[[str], TopicConfig],
        *,
        now_ms: int,
        threads: int = DEFAULT_RECOVERY_THREADS,
    ) -> list[Log]:
        """Open every partition found, several at a time. One that cannot be opened is logged and kept in
        `failed`; the others are not affected. From here on a crash is an unclean stop."""
        unlink_if_there(self.fs, os.path.join(self.path, CLEAN_SHUTDOWN_FILE))
        if self.was_clean:
            fsync_path(self.fs, self.path)
        checkpoints = {name: self._read_checkpoint(name) for name in _CHECKPOINTS}
        found = self._partitions()
        if found:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(threads, "ottla-log-open") as pool:
                opening = {
                    pool.submit(self._open_log, key, path, config_for(key[0]), checkpoints, now_ms): key
                    for key, path in found
                }
                self._wait_until_opened(opening)
            for future, key in opening.items():
                opened = future.result()
                if opened is not None:
                    self.logs[key] = opened
        known = self.logs.keys() | {parse_partition_directory(name) for name in self.failed}
        if any(offsets.keys() - known for offsets in checkpoints.values()):
            # A topic of the same name must not begin with the offsets of one that is gone.
            self.write_checkpoints()
        return list(self.logs.values())

    def _partitions(self) -> list[tuple[TopicPartition, str]]:
        found = []
        for name in sorted(os.listdir(self.path)):
            path = os.path.join(self.path, name)
            if name == METADATA_LOG or not os.path.isdir(path):
                continue
            if is_deleted_directory(name):
                self._deleted.append(DeletedFile(path))
                continue
            try:
                found.append((parse_partition_directory(name), path))
            except ValueError:
                logger.warning("directory is no partition and is left alone path=%s", path)
        return found

    def _open_log(
        self,
        key: TopicPartition,
        path: str,
        config: TopicConfig,
        checkpoints: dict[str, dict[TopicPartition, int]],
        now_ms: int,
    ) -> Log | None:
        try:
            log = Log.open(
                path,
                config,
                now_ms=now_ms,
                clean=self.was_clean,
                log_start_offset=checkpoints[LOG_START_OFFSET_CHECKPOINT].get(key, 0),
                recovery_point=checkpoints[RECOVERY_POINT_CHECKPOINT].get(key, 0),
                high_watermark=checkpoints[HIGH_WATERMARK_CHECKPOINT].get(key, 0),
                fs=self.fs,
                producer_id_expiration_ms=self.producer_id_expiration_ms,
            )
        except OSError as error:  # the disk, not the partition
            self._not_opened(key, path, checkpoints, error)
            self.fail(error)
        except DamagedLog as error:
            logger.error("partition is offline: %s; repair or remove its files and start again", error)
            self._not_opened(key, path, checkpoints, error)
        except Exception as error:  # one damaged partition must not keep the others away
            logger.error("partition cannot be opened path=%s", path, exc_info=error)
            self._not_opened(key, path, checkpoints, error)
        else:
            log.on_failure = self.fail
            log.cleaner_checkpoint = checkpoints[CLEANER_OFFSET_CHECKPOINT].get(key)
            return log
        return None

    def _not_opened(
        self,
        key: TopicPartition,
        path: str,
        checkpoints: dict[str, dict[TopicPartition, int]],
        error: Exception,
    ) -> None:
        self.failed[os.path.basename(path)] = error
        for name, offsets in checkpoints.items():
            if key in offsets:
                self._carried_over.setdefault(name, {})[key] = offsets[key]

    def _wait_until_opened(self, opening: dict[Future[Log | None], TopicPartition]) -> None:
        """Wait for all, with a line now and then if it takes long."""
        from concurrent.futures import wait

        waiting = set(opening)
        while True:
            waiting = wait(waiting, timeout=_PROGRESS_SECONDS).not_done
            if not waiting:
                return
            logger.info(
                "opening logs path=%s opened=%d of=%d was_clean=%s",
                self.path,
                len(opening) - len(waiting),
                len(opening),
                self.was_clean,
            )

    def fail(self, error: OSError) -> None:
        """Take the directory out of use after a disk error; may be called in any thread and again."""
        if self.failure is not None or self._lock_fd < 0:
            return
        self.failure = error
        logger.error("log directory is offline path=%s error=%s", self.path, error)
        for log in list(self.logs.values()):
            log.failure = error
        self.on_failure(self)

    def close(self, *, broker_epoch: int = -1) -> None:
        """Flush and close every log, write the checkpoints and mark the stop as clean."""
        if self._lock_fd < 0:
            return
        if self.failure is not None:
            self.release()
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_CLOSING_THREADS, "ottla-log-close") as pool:  # they mostly wait for fsync
            closed = list(pool.map(_close_log, self.logs.values()))
        clean = not self.failed and all(closed)
        if self.failure is None:  # it may have failed while closing
            self.write_checkpoints()
        if clean and self.failure is None:
            text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
            try:
                write_file(self.fs, os.path.join(self.path, CLEAN_SHUTDOWN_FILE), text.encode(), sync=True)
            except OSError as error:
                self.fail(error)
        self.release()

    def release(self) -> None:
        """Give back the lock and the files without writing anything, as a crash would."""
        for log in self.logs.values():
            log.release()
        self.logs = {}
        if self._lock_fd >= 0:
            _locked_here.discard(os.path.realpath(os.path.join(self.path, LOCK_FILE)))
            os.close(self._lock_fd)
            self._lock_fd = -1

    def write_checkpoints(self) -> None:
        """Write recovery points, log starts, high watermarks and how far compaction came; may run in a worker
        thread."""
        self.write_recovery_points()
        self.write_high_watermarks()
        self.write_cleaner_offsets()

    # Others make and delete logs meanwhile. A copy is made in one step, which a list of pairs is not.

    def write_recovery_points(self) -> None:
        """Write the recovery points, and before them the log starts, which they follow: below a log start nothing
        needs to be on the disk."""
        self.write_log_start_offsets()
        self._write_checkpoint(
            RECOVERY_POINT_CHECKPOINT, {key: log.recovery_point for key, log in self.logs.copy().items()}
        )

    def write_high_watermarks(self) -> None:
        self._write_checkpoint(
            HIGH_WATERMARK_CHECKPOINT, {key: log.high_watermark for key, log in self.logs.copy().items()}
        )

    def write_log_start_offsets(self) -> None:
        """Write the log starts; only those that lie inside a segment say more than the file names do."""
        self._write_checkpoint(
            LOG_START_OFFSET_CHECKPOINT,
            {
                key: log.log_start_offset
                for key, log in self.logs.copy().items()
                if log.log_start_offset > log.segments[0].base_offset
            },
        )

    def write_cleaner_offsets(self) -> None:
        """Write how far compaction came; may run in a worker thread."""
        self._write_checkpoint(
            CLEANER_OFFSET_CHECKPOINT,
            {
                key: log.cleaner_checkpoint
                for key, log in self.logs.copy().items()
                if log.cleaner_checkpoint is not None
            },
        )

    # ---- partitions

    def create_log(
        self,
        topic: str,
        partition: int,
        topic_id: Uuid,
        config: TopicConfig,
        *,
        now_ms: int,
        leader_epoch: int = UNDEFINED_EPOCH,
    ) -> Log:
        """A new partition."""
        log = Log.create(
            os.path.join(self.path, partition_directory(topic, partition)),
            topic_id,
            config,
            now_ms=now_ms,
            fs=self.fs,
            leader_epoch=leader_epoch,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
        )
        log.on_failure = self.fail
        self.logs[(topic, partition)] = log
        return log

    def delete_log(self, log: Log, *, delay_ms: int = 0) -> None:
        """Take a partition out of use at once; `purge_deleted` removes its files later. Whoever deletes must
        write the checkpoints after, lest a new topic of that name gets the offsets of the old one."""
        self._set_aside(log, deleted_directory(log.topic, log.partition))
        self._deleted.append(DeletedFile(log.directory, delay_ms))

    def set_stray(self, log: Log) -> None:
        """Take a partition out of use that belongs to no topic of the cluster; its files are kept."""
        self._set_aside(log, stray_directory(log.topic, log.partition))

    def purge_deleted(self, now_ms: int | None = None) -> int:
        """Remove the directories of deleted partitions that are due (all of them if `now_ms` is None); may run
        in a worker thread. Returns how many."""
        due = [file for file in self._deleted if file.is_due(now_ms)]
        import shutil

        for file in due:
            shutil.rmtree(file.path, ignore_errors=True)
            self._deleted.remove(file)
        return len(due)

    @property
    def has_deleted_partitions(self) -> bool:
        """Whether there is something to purge, now or later."""
        return bool(self._deleted)

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs.values())

    def _set_aside(self, log: Log, name: str) -> None:
        path = os.path.join(self.path, name)
        log.is_closed = (
            True  # before its files are gone, which a flush in another thread might take for a failure
        )
        try:
            self.fs.rename(log.directory, path)
        except OSError as error:
            log.is_closed = False
            raise failed(log, "rename", error) from error
        log.release()
        log.directory = path
        self.logs.pop((log.topic, log.partition), None)

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(os.path.join(self.path, name))
        except CorruptCheckpoint as error:
            logger.warning("checkpoint is unreadable and seen as empty error=%s", error)
            return {}

    def _write_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        if self.failure is not None:
            return
        with self._checkpoint_lock:
            offsets = {**self._carried_over.get(name, {}), **offsets}
            if offsets == self._written.get(name):
                return
            try:
                write_offsets(self.fs, os.path.join(self.path, name), offsets)
            except OSError as error:
                if error.errno in OUT_OF_DESCRIPTORS:
                    raise
                self.fail(error)
            else:
                self._written[name] = offsets

    def _read_clean_shutdown(self) -> tuple[bool, int]:
        """Whether the last stop was clean, and the broker epoch it noted (-1 if none)."""
        try:
            with open(os.path.join(self.path, CLEAN_SHUTDOWN_FILE), encoding="utf-8") as file:
                content = file.read()
        except FileNotFoundError:
            return False, -1
        import json

        try:
            return True, int(json.loads(content)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):  # Kafka takes the mere presence for a clean stop
            return True, -1


def _nobody_cares(directory: LogDirectory) -> None:
    """What is done about a failed directory that serves nobody."""


def _close_log(log: Log) -> bool:
    try:
        log.flush()
        log.close()
    except OSError as error:
        logger.error("partition cannot be closed partition=%s error=%s", log.name, error)
        return False
    except Exception as error:  # the others must still be closed
        logger.error("partition cannot be closed partition=%s", log.name, exc_info=error)
        return False
    return True


def is_locked_here(path: str) -> bool:
    """Whether this process holds the lock; opening the file to ask the system would give it up."""
    return os.path.realpath(path) in _locked_here


def _lock(path: str) -> int:
    directory = os.path.dirname(path)
    # Looked up before the file is opened: closing any descriptor of it would give up our POSIX lock.
    if is_locked_here(path):
        raise DirectoryInUse(f"{directory} is in use by a broker of this process")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # EACCES or EAGAIN, as POSIX leaves open
        os.close(fd)
        raise DirectoryInUse(f"{directory} is in use by another broker") from error
    _locked_here.add(os.path.realpath(path))
    return fd


def flush_logs(logs: Iterable[Log]) -> None:
    """Flush logs one after the other, for a worker thread; one that fails keeps the others from nothing."""
    for log in logs:
        with suppress(KafkaError):  # told when it failed
            log.flush()


def flush_directory(directory: LogDirectory) -> None:
    """fsync the directory itself, after partitions were made or renamed in it."""
    try:
        fsync_path(directory.fs, directory.path)
    except OSError as error:
        directory.fail(error)
