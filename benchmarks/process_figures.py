"""What processes and threads have used so far, from /proc, and a stopwatch that looks at them."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_NANOSECONDS = 1e-9
AT_REST_CORES = 0.05
_REST_SECONDS, REST_PATIENCE_SECONDS = 0.1, 5.0


class Target(Protocol):
    """A running broker as a client sees it, and the process that it is."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def pid(self) -> int: ...


@dataclass(slots=True)
class Stopwatch:
    """Wall time of a stretch of work, and what broker and client used for it."""

    seconds: float = 0.0
    broker_cpu_seconds: float = 0.0
    resident_mb: float = 0.0
    client: float = 0.0  # see Entry in measures.py
    client_waits: float = 0.0
    cores: float = 0.0
    broker_cores: float = 0.0
    under_way: float = 0.0
    result: dict[str, float] = field(default_factory=dict)


@contextmanager
def timed(broker: Target) -> Iterator[Stopwatch]:
    """Fill a stopwatch with the block; the client is this process."""
    watch = Stopwatch()
    threads_before, own_before = thread_seconds(os.getpid()), time.process_time()
    cpu_before, before = cpu_seconds(broker.pid, with_children=True), time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - before
    watch.broker_cpu_seconds = cpu_seconds(broker.pid, with_children=True) - cpu_before
    own = time.process_time() - own_before
    threads = thread_seconds(os.getpid())
    watch.client, watch.client_waits = busiest_thread(threads_before, threads, watch.seconds)
    watch.broker_cores = watch.broker_cpu_seconds / watch.seconds
    watch.cores = own / watch.seconds + watch.broker_cores
    watch.resident_mb = resident_mb(broker.pid)


def thread_seconds(pid: int) -> dict[str, tuple[float, float]]:
    """How long each thread of a process has run, and has waited for a core."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            ran, waited, _ = (task / "schedstat").read_text().split()
        except OSError:  # it has just ended
            continue
        found[task.name] = (int(ran) * _NANOSECONDS, int(waited) * _NANOSECONDS)
    return found


def busiest_thread(
    before: Mapping[str, tuple[float, float]], after: Mapping[str, tuple[float, float]], seconds: float
) -> tuple[float, float]:
    """The shares of the time in which the thread that wanted to run the most ran, and waited for a core."""
    used = []
    for thread, (ran, waited) in after.items():
        ran_before, waited_before = before.get(thread, (0.0, 0.0))
        used.append((ran - ran_before, waited - waited_before))
    ran, waited = max(used, key=sum, default=(0.0, 0.0))
    return ran / seconds, waited / seconds


def cpu_seconds(pid: int, *, with_children: bool = False) -> float:
    """User and system time of the process with all its threads, and with the processes it has started."""
    # The number of the clock of another process is a part of Linux's interface: clock_getcpuclockid(3) makes it like
    # this. It counts nanoseconds, where /proc counts hundredths of a second.
    used = time.clock_gettime((~pid << 3) | 2)
    if not with_children:
        return used
    # The second field is the command in parentheses and may hold spaces: count from behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
    return used + ended + sum(map(_cpu_seconds_of_child, _children(pid)))


def wait_for_rest(pid: int, patience_seconds: float = REST_PATIENCE_SECONDS) -> bool:
    """Until a process has nothing more to do; whether that was so in time."""
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        before = cpu_seconds(pid)
        time.sleep(_REST_SECONDS)
        if cpu_seconds(pid) - before < AT_REST_CORES * _REST_SECONDS:
            return True
    return False


def _cpu_seconds_of_child(pid: int) -> float:
    """Of a process that may end at any moment: what it used is then among what its parent's ended ones have."""
    try:
        return cpu_seconds(pid, with_children=True)
    except OSError:
        return 0.0


def _children(pid: int) -> set[int]:
    """The processes that it has started and that still run."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for each in lists for child in each.read_text().split()}


def resident_mb(pid: int) -> float:
    """Resident memory of the process and of those it has started."""
    own = _resident_kb(pid)
    if own is None:
        raise ValueError(f"process {pid} has no resident memory")
    return own / 1024 + sum(_resident_mb_of_child(child) for child in _children(pid))


def _resident_mb_of_child(pid: int) -> float:
    """Of a process that may end at any moment, and has no memory when it has ended and nobody has asked how."""
    try:
        own = _resident_kb(pid)
        return 0.0 if own is None else own / 1024 + sum(map(_resident_mb_of_child, _children(pid)))
    except OSError:
        return 0.0


def _resident_kb(pid: int) -> int | None:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return None


class OtherWork:
    """How busy the machine was with what is neither this process nor a broker of ours."""

    def __init__(self) -> None:
        self._busy_before = _busy_seconds()
        self._times_before = os.times()

    def cores(self) -> float:
        """Cores in use by others since the start, on average; brokers must have been waited for."""
        now = os.times()
        ours = sum(now[:4]) - sum(self._times_before[:4])
        elapsed = max(now.elapsed - self._times_before.elapsed, 1 / os.sysconf("SC_CLK_TCK"))
        return max(0.0, (_busy_seconds() - self._busy_before - ours) / elapsed)


def _busy_seconds() -> float:
    """CPU time that the whole machine spent on processes since it was booted."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """Cores and memory of this machine, in words."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory_gb:.0f} GB of memory"
