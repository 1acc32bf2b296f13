"""How late Ottla's event loop was, as the broker itself tells when it is asked by a signal."""

import re
import signal
import time

from compat_tests.broker_process import BrokerProcess
from compat_tests.ottla_process import OttlaProcess

PATIENCE_SECONDS = 10
FIGURES = ("p50_ms", "p99_ms", "p999_ms", "max_ms", "work_p999_ms", "work_max_ms")
_LINE = re.compile(r"loop lag (.*)")
_FIGURE = re.compile(r"(\w+)=([\d.]+)")
_LONGEST_WORK = re.compile(r"longest_work=(\S+)")
_PLACES_SHOWN = 2  # the innermost
_NOWHERE = "-"


def read_lag(broker: BrokerProcess) -> tuple[dict[str, float], str]:
    """How late the loop was since the last call, and what it was doing when it worked longest. Nothing the first time,
    from when on it is measured, and for a broker that does not tell."""
    if not isinstance(broker, OttlaProcess):
        return {}, ""
    seen = len(_lines(broker))
    broker.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(lines := _lines(broker)) == seen:
        assert time.monotonic() < deadline, "the broker does not tell how late its loop is"
        time.sleep(0.01)
    figures = {name: float(value) for name, value in _FIGURE.findall(lines[-1])}
    work = _LONGEST_WORK.search(lines[-1])
    return {name: figures[name] for name in FIGURES if name in figures}, work[1] if work else ""


def places(longest_work: str) -> str:
    """The innermost functions of what the loop was seen doing; nothing if it was too short to be seen."""
    if longest_work in ("", _NOWHERE):
        return ""
    return " → ".join(f"`{place}`" for place in longest_work.split("/")[-_PLACES_SHOWN:])


def _lines(broker: BrokerProcess) -> list[str]:
    # A line that is being written has no end yet.
    return _LINE.findall(broker.log_path.read_text(errors="replace").rpartition("\n")[0])
