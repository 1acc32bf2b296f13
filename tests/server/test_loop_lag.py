"""How late the loop is, from the lengths of its passes."""

import logging
import re
import signal
import sys

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from compat_tests.eventually import eventually
from compat_tests.ottla_process import OttlaProcess
from ottla.server.loop_lag import CoreWaits, LoopLag, lateness


def test_a_single_long_pass_makes_few_moments_late() -> None:
    """One second of work in a hundred: half of the worst hundredth waits for more than half a second."""
    passes = [(1.0, 1)]
    assert lateness(passes, 100, 0.5) == pytest.approx(0, abs=1e-9)
    assert lateness(passes, 100, 0.995) == pytest.approx(0.5)
    assert lateness(passes, 100, 0.999) == pytest.approx(0.9)


def test_passes_that_fill_all_the_time() -> None:
    """Whoever comes waits for the rest of a pass, on average for half of it."""
    assert lateness([(0.01, 100)], 1, 0.5) == pytest.approx(0.005)
    assert lateness([(0.01, 100)], 1, 0.99) == pytest.approx(0.0099)


def test_nothing_measured_is_not_late() -> None:
    """No long pass, no lag."""
    assert lateness([], 10, 0.999) == 0


@pytest.mark.parametrize("seconds", [0.0003, 0.0021, 0.05, 1.7, 4000.0])
def test_any_length_is_counted(seconds: float) -> None:
    """Buckets reach from the shortest pass to any length; the longest is exact."""
    lag = LoopLag()
    lag.note(seconds, seconds / 2)
    report = lag.report()
    assert report.max_ms == seconds * 1000
    assert report.work_max_ms == seconds * 500
    # The moments of this pass, which are all there were: nobody waited longer than it took.
    assert report.p999_ms == pytest.approx(seconds * 1000, rel=0.01)


async def test_a_line_for_each_time_it_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    """The first call begins to measure, the next one tells and begins anew."""
    caplog.set_level(logging.INFO, "ottla.server")
    lag = LoopLag()
    lag.tell_at_stop()
    assert caplog.messages == []
    lag.tell()
    lag.note(0.25, 0.125, 0.0)
    await wait_all_tasks_blocked()
    lag.tell()
    await trio.lowlevel.checkpoint()
    lag.tell_at_stop()
    started, long_pass, told, at_stop = caplog.messages
    assert started == "loop lag is measured from now on"
    assert long_pass == "loop pass ms=250.000 work_ms=125.000 place=-"
    assert " long_passes=1 " in told
    assert " max_ms=250.000" in told
    assert "work_max_ms=125.000" in told
    assert "blocked_max_ms=125.000" in told
    assert " max_ms=250.000" not in at_stop


def test_a_broker_tells_on_sigusr1() -> None:
    """The command answers the signal with a line in its log, and serves on."""

    def lines() -> list[str]:
        return re.findall("loop lag (?:seconds|is measured)", broker.log_tail())

    with OttlaProcess() as broker:
        broker.send_signal(signal.SIGUSR1)
        eventually(lines, ["loop lag is measured"])
        broker.send_signal(signal.SIGUSR1)
        eventually(lines, ["loop lag is measured", "loop lag seconds"])
        assert broker.stop() == 0
        assert len(lines()) == 3


def test_work_is_not_more_than_the_pass() -> None:
    """What was used up to a millisecond before is counted with a pass, but never more than it is long."""
    lag = LoopLag()
    lag.note(0.002, 0.003)
    assert lag.report().work_max_ms == 2


def test_who_neither_works_nor_waits_for_a_core_is_blocked() -> None:
    """The longest of what is left of a pass counts."""
    lag = LoopLag()
    lag.note(0.1, 0.01, 0.07)
    lag.note(0.2, 0.15, 0.04)
    lag.note(0.005, 0.005, 0.001)
    assert lag.report().blocked_max_ms == pytest.approx(20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_waiting_for_a_core_is_told_of_the_thread_that_asks() -> None:
    """It only grows; nothing is told before it is opened, and after it is closed."""
    waits = CoreWaits()
    assert waits.seconds() is None
    waits.open()
    first, second = waits.seconds(), waits.seconds()
    assert first is not None
    assert second is not None
    assert 0 <= first <= second
    waits.close()
    assert waits.seconds() is None


def test_long_passes_are_told_one_by_one_up_to_a_number(caplog: pytest.LogCaptureFixture) -> None:
    """All are counted; what takes no more than a few milliseconds is none of them."""
    caplog.set_level(logging.INFO, "ottla.server")
    lag = LoopLag()
    for _ in range(50):
        lag.note(0.1, 0.006)
        lag.note(0.1, 0.004)
    assert lag.report().long_passes == 50
    assert len(caplog.messages) == 20
