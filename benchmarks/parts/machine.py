"""What the machine can do by itself, in the same run: the walls that any broker stands between."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable

import trio

from benchmarks.bench import Bench, Part
from benchmarks.measures import Measure, percentile
from benchmarks.report import Section
from ottla.wire.crc import crc32c

SECTION = Section(
    "The machine",
    """\
Taken in the same run, with nothing else going on: copying memory, CRC-32C of a megabyte at a time, `sendfile` from
the page cache over a loopback connection, appending a megabyte at a time to a file without and with fsync at the end,
and the round trip of one byte between two Trio tasks over a loopback connection. The last rows are how long a thread
that does nothing else takes at most, by its own CPU time, to count a little, and to append a megabyte, and how often
more than 5 ms in a minute: what exceeds the usual is the kernel's work and the host's, and nobody who shares the
machine is spared it.
{rounds}""",
)
MEMCPY = Measure("memcpy", "GB/s", True)
CRC = Measure("crc32c", "GB/s", True)
SENDFILE = Measure("loopback sendfile", "GB/s", True)
APPEND = Measure("disk append, page cache", "GB/s", True)
APPEND_SYNCED = Measure("disk append, fsync at the end", "GB/s", True)
ROUND_TRIP = Measure("empty Trio round trip", "µs", False)
COUNT_LONGEST = Measure("counting by one, the longest", "ms", False)
COUNT_LONG = Measure("counting by one, more than 5 ms", "a minute", False)
APPEND_USUAL = Measure("appending a megabyte, p50", "ms", False)
APPEND_LATE = Measure("appending a megabyte, p99.9", "ms", False)
APPEND_LONGEST = Measure("appending a megabyte, the longest", "ms", False)
APPEND_LONG = Measure("appending a megabyte, more than 5 ms", "a minute", False)
LONG_SECONDS = 0.005
COUNTING_SECONDS = 20.0
MB = 1 << 20


def measure_machine(bench: Bench) -> None:
    """One after the other, a second or so each."""
    seconds = bench.size(1.0, 0.2)
    source, target = bytearray(os.urandom(32 * MB)), bytearray(32 * MB)

    def copy() -> int:
        target[:] = source
        return len(source)

    block = bytes(source[:MB])

    def check() -> int:
        crc32c(block)
        return MB

    bench.note(MEMCPY, _rate(copy, seconds))
    bench.note(CRC, _rate(check, seconds))
    bench.note(SENDFILE, _sendfile(block, seconds))
    for measure, is_synced in ((APPEND, False), (APPEND_SYNCED, True)):
        bench.note(measure, _append(block, bench.size(512, 128), is_synced))
    bench.note(ROUND_TRIP, trio.run(_round_trip, bench.size(20_000, 4_000)))
    counts = _own_times(_count, bench.size(COUNTING_SECONDS, 1.0))
    bench.note(COUNT_LONGEST, max(counts) * 1000)
    bench.note(COUNT_LONG, _long_a_minute(counts))
    appends = []
    for _ in range(bench.size(5, 1)):
        with tempfile.TemporaryFile(buffering=0) as file:
            appends += _own_times(lambda: file.write(block), bench.size(0.7, 0.1))
    bench.note(APPEND_LONG, _long_a_minute(appends))
    for measure, share in ((APPEND_USUAL, 0.5), (APPEND_LATE, 0.999), (APPEND_LONGEST, 1.0)):
        bench.note(measure, percentile(appends, share) * 1000)


def _rate(act: Callable[[], int], seconds: float) -> float:
    """Gigabytes a second of what the act says it has done."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        done += act()
    return done / 1e9 / (time.perf_counter() - start)


def _sendfile(block: bytes, seconds: float) -> float:
    ours, theirs = _loopback()

    def drain() -> None:
        room = bytearray(MB)
        while theirs.recv_into(room):
            pass

    thread = threading.Thread(target=drain)
    thread.start()
    with tempfile.TemporaryFile() as file:
        for _ in range(64):
            file.write(block)
        file.flush()
        with ours:
            rate = _rate(lambda: os.sendfile(ours.fileno(), file.fileno(), 0, 64 * MB), seconds)
    thread.join()
    theirs.close()
    return rate


def _append(block: bytes, count: int, is_synced: bool) -> float:
    with tempfile.TemporaryFile(buffering=0) as file:
        start = time.perf_counter()
        for _ in range(count):
            file.write(block)
        if is_synced:
            os.fsync(file.fileno())
        return count * len(block) / 1e9 / (time.perf_counter() - start)


def _count() -> None:
    """A little."""
    for _ in range(1000):
        pass


def _own_times(act: Callable[[], object], seconds: float) -> list[float]:
    """The seconds of CPU that each of the acts took that were done in so many."""
    times, before = [], time.thread_time()
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        act()
        now = time.thread_time()
        times.append(now - before)
        before = now
    return times


def _long_a_minute(times: list[float]) -> float:
    """How many were long, in a minute of such work."""
    return sum(each > LONG_SECONDS for each in times) / sum(times) * 60


async def _round_trip(count: int) -> float:
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in _loopback())

    async def answer() -> None:
        async for data in theirs:
            await theirs.send_all(data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        start = time.perf_counter()
        for _ in range(count):
            await ours.send_all(b"x")
            await ours.receive_some()
        seconds = time.perf_counter() - start
        await ours.aclose()
    return seconds / count * 1e6


def _loopback() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    return ours, theirs


MACHINE_PART = Part(
    "machine",
    SECTION,
    (
        MEMCPY,
        CRC,
        SENDFILE,
        APPEND,
        APPEND_SYNCED,
        ROUND_TRIP,
        COUNT_LONGEST,
        COUNT_LONG,
        APPEND_USUAL,
        APPEND_LATE,
        APPEND_LONGEST,
        APPEND_LONG,
    ),
    measure_machine,
    shares_broker=False,
    is_of_machine=True,
    seconds=35,
)
