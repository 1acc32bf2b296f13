"""What a process has used so far, from /proc."""

import os
from pathlib import Path


def cpu_seconds(pid: int, *, with_children: bool = False) -> float:
    """User and system time of the process with all its threads, and with the processes it has started."""
    # The second field is the command in parentheses and may hold spaces: count from behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if not with_children:
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    ended = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return ended + sum(cpu_seconds(child, with_children=True) for child in _children(pid))


def _children(pid: int) -> set[int]:
    """The processes that it has started and that still run."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for each in lists for child in each.read_text().split()}


def resident_mb(pid: int) -> float:
    """Resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no resident memory")


class OtherWork:
    """How busy the machine was with what is neither this process nor a broker of ours."""

    def __init__(self) -> None:
        self._busy_before = _busy_seconds()
        self._times_before = os.times()

    def cores(self) -> float:
        """Cores in use by others since the start, on average; brokers must have been waited for."""
        now = os.times()
        ours = sum(now[:4]) - sum(self._times_before[:4])
        return max(
            0.0, (_busy_seconds() - self._busy_before - ours) / (now.elapsed - self._times_before.elapsed)
        )


def _busy_seconds() -> float:
    """CPU time that the whole machine spent on processes since it was booted."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """Cores and memory of this machine, in words."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory_gb:.0f} GB of memory"
