"""Failing disks: what the broker does when a log directory can be written or read no more.

As in Kafka, the directory goes offline until the next start: its partitions are answered with
KAFKA_STORAGE_ERROR and lose their leader in the metadata, the others are served on. Without the directory of
the metadata log, or without any, the process ends with one sentence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from ottla.log_store.directory import LogDirectory
from ottla.metadata.controller.broker_registration import plan_directories_offline
from ottla.server.log_catalog import StorageFailed
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")


class Storage:
    """Hears of disk errors from any thread, and acts on them in the event loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._changed = trio.Event()
        self._metadata_error: OSError | None = None
        self._directories: list[LogDirectory] = []

    @property
    def metadata_failed(self) -> bool:
        return self._metadata_error is not None or self._failed_with_metadata() is not None

    def check(self) -> None:
        """StorageFailed if what is left of the disks is not enough."""
        if self._metadata_error is not None:
            raise StorageFailed(
                f"The metadata log in {self._broker.store.metadata_directory} has failed: {self._metadata_error}."
            )
        failed = self._failed_with_metadata()
        if failed is not None:
            raise StorageFailed(
                f"The log directory {failed.path}, which holds the metadata, has failed: {failed.failure}."
            )
        if not self._broker.logs.directories:
            raise StorageFailed("All log directories have failed.")

    def watch(self, directories: Iterable[LogDirectory]) -> None:
        """Hear of failures from now on."""
        token = trio.lowlevel.current_trio_token()

        def failed(directory: LogDirectory) -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(self._failed, directory)

        for directory in directories:
            directory.on_failure = failed
            self._directories.append(directory)

    def look_again(self) -> None:
        """A log may not have been made: see that nobody is said to lead it."""
        self._changed.set()

    async def run(self) -> None:
        """Tell the metadata of each directory that fails; StorageFailed when the broker cannot go on."""
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            self.check()
            # As it is now: a plan is made in a worker thread, and what fails meanwhile has its own turn.
            plan = partial(
                plan_directories_offline,
                node_id=self._broker.node_id,
                online=self._broker.logs.online_ids,
                partitions=set(self._broker.partitions.offline),
            )
            with suppress(KafkaError):  # the metadata log has failed now, which is told at the next turn
                await self._broker.decide(plan)

    @contextmanager
    def metadata_must_not_fail(self) -> Iterator[None]:
        """Around what writes the metadata log: a disk error ends the broker."""
        try:
            yield
        except OSError as error:
            log.error("metadata log has failed error=%s", error)
            self._metadata_error = error
            self._changed.set()
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log has failed: {error}."
            ) from error

    def _failed(self, directory: LogDirectory) -> None:
        self._broker.logs.take_offline(directory)
        self._changed.set()

    def _failed_with_metadata(self) -> LogDirectory | None:
        metadata_directory = str(self._broker.store.metadata_directory)
        for directory in self._directories:
            if directory.failure is not None and directory.path == metadata_directory:
                return directory
        return None
