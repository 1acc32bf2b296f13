"""The broker dies at each change of the disk while a transaction runs and ends; afterwards it is whole or not there.

Before every change of a file the whole data directory is copied, which is what a broker finds that is started after
kill -9 at that moment. Besides each copy there is one in which half of the change was written.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import fetch_offset, wait_for_coordinator
from compat_tests.raw_topics import create_topic, wait_until_served
from compat_tests.raw_transactions import RawProducer, read_committed
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode

NONE = ErrorCode.NONE
CHANGES = ("pwrite", "ftruncate", "rename", "unlink")
SETTINGS = {
    # Small directories: they are copied again and again.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.index.size.max.bytes": "1024",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """A copy of the directory, and what the client had been told by then."""

    directory: Path
    title: str
    is_ending: bool
    is_over: bool


class Camera:
    """Takes the copies, in the broker's own threads, before it goes on."""

    def __init__(self, data: Path, album: Path) -> None:
        self.data, self.album = data, album
        self.is_on = self.is_ending = self.is_over = False
        self.moments: list[Moment] = []
        self._lock = threading.Lock()

    def watch(self, name: str, change: Callable[..., object]) -> Callable[..., object]:
        """The same function of the disk, which lets itself be seen before it does anything."""

        def call(*arguments: object) -> object:
            path = _path_of(arguments[0])
            with self._lock:
                if self.is_on and self.data in path.parents:
                    self._take(f"{name} {path.relative_to(self.data)}")
                    if name == "pwrite" and path.suffix == ".log":
                        self._take_torn(path, *arguments[1:])  # type: ignore[arg-type]
            return change(*arguments)

        return call

    def take_last(self) -> None:
        with self._lock:
            self._take("the end")
            self.is_on = False

    def _take(self, title: str) -> Path:
        directory = self.album / str(len(self.moments))
        shutil.copytree(self.data, directory, copy_function=_copy_sparse)
        self.moments.append(Moment(directory, title, self.is_ending, self.is_over))
        return directory

    def _take_torn(self, path: Path, data: bytes, offset: int) -> None:
        directory = self._take(f"half of pwrite {path.relative_to(self.data)}")
        fd = os.open(directory / path.relative_to(self.data), os.O_WRONLY)
        os.pwrite(fd, memoryview(data)[: len(data) // 2], offset)
        os.close(fd)


def _path_of(argument: object) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{argument}") if isinstance(argument, int) else str(argument))


def _copy_sparse(source: str, target: str) -> None:
    """Index files have their length beforehand, most of it holes."""
    with open(source, "rb") as reader, open(target, "wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        if os.fstat(reader.fileno()).st_blocks:
            writer.write(reader.read())


@pytest.fixture
def camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Camera]:
    """Watches the disk of every broker that is started after this."""
    camera = Camera(tmp_path / "data", tmp_path / "album")
    for name in CHANGES:
        real = os.replace if name == "rename" else getattr(os, name)
        monkeypatch.setattr(
            f"ottla.log_store.files.OsFileSystem.{name}", staticmethod(camera.watch(name, real))
        )
    yield camera
    monkeypatch.undo()


def transact(producer: RawProducer, word: bytes, offset: int) -> None:
    """A transaction on two partitions and a group, not ended."""
    if producer.version == 1:
        assert producer.add("t", 0, 1) == NONE
    assert producer.produce("t", 0, word, word + b" again") == NONE
    assert producer.produce("t", 1, word) == NONE
    assert producer.offsets("g", "t", 0, offset) == NONE
    assert producer.produce("t", 0, word + b" at last") == NONE


def commit(producer: RawProducer) -> None:
    assert producer.end(committed=True) == NONE
    eventually(producer.state, "CompleteCommit")


def abort(producer: RawProducer) -> None:
    assert producer.end(committed=False) == NONE
    eventually(producer.state, "CompleteAbort")


def fence(producer: RawProducer) -> None:
    assert RawProducer(producer.raw, producer.transactional_id, producer.version).init() == NONE


def time_out(producer: RawProducer) -> None:
    eventually(producer.state, "CompleteAbort")


ENDS = {"commit": commit, "abort": abort, "fence": fence, "time out": time_out}


# Versions differ at the end of a transaction only; what is left out here is for whoever changes the endings.
CASES = [("commit", 1), ("commit", 2), ("abort", 1), ("fence", 2), ("time out", 2)]
if os.environ.get("OTTLA_SLOW", "0") not in ("", "0"):
    CASES = [(end, version) for end in ENDS for version in (1, 2)]


@pytest.mark.parametrize(("end", "version"), CASES)
def test_dying_at_each_change(camera: Camera, end: str, version: int) -> None:
    """Wherever it dies: all records of the transaction and its offset are there or none; both if that was told."""
    with Broker(SETTINGS, data=camera.data) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 2)
        wait_for_coordinator(raw, "g")
        producer = RawProducer(raw, "id", version)
        assert producer.init(timeout_ms=4000 if end == "time out" else 60_000) == NONE
        transact(producer, b"before", 1)
        commit(producer)
        camera.is_on = True
        transact(producer, b"now", 2)
        camera.is_ending = True
        ENDS[end](producer)
        camera.is_over = True
        camera.take_last()
    seen = set()
    for moment in camera.moments:
        is_there = _is_there_after_restart(moment, version)
        seen.add(is_there)
        if end != "commit" or not moment.is_ending:
            assert not is_there, f"not committed when it died at {moment}"
        elif moment.is_over:
            assert is_there, f"committed when it died at {moment}"
    assert seen == ({True, False} if end == "commit" else {False})
    assert len(camera.moments) > 20


def _is_there_after_restart(moment: Moment, version: int) -> bool:
    """Start on the copy, see that what was being ended is finished, and that the next transaction works."""
    with Broker(SETTINGS, data=moment.directory) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_until_served(raw, "t", 2)
        wait_for_coordinator(raw, "g")
        producer = RawProducer(raw, "id", version)
        # Nobody has to come for a transaction that was about to be ended; an open one waits for its producer.
        eventually(lambda: producer.state() in ("Ongoing", "CompleteCommit", "CompleteAbort", "Empty"), True)
        assert producer.init() == NONE, moment
        first, second = values(raw, 0), values(raw, 1)
        committed = fetch_offset(raw, "g", "t", 0).committed_offset
        assert first[:3] == [b"before", b"before again", b"before at last"], moment
        assert second[:1] == [b"before"], moment
        now = (first[3:], second[1:], committed)
        assert now in (
            ([b"now", b"now again", b"now at last"], [b"now"], 2),
            ([], [], 1),
        ), f"torn when it died at {moment}"
        transact(producer, b"after", 3)
        commit(producer)
        assert values(raw, 0) == [*first, b"after", b"after again", b"after at last"], moment
        assert values(raw, 1) == [*second, b"after"], moment
        assert fetch_offset(raw, "g", "t", 0).committed_offset == 3
    shutil.rmtree(moment.directory)
    return committed == 2


def values(raw: RawClient, partition: int) -> list[bytes | None]:
    """What consumers of committed records see when no transaction is open."""
    eventually(lambda: read_committed(raw, "t", partition)[1], True)
    return read_committed(raw, "t", partition)[0]
