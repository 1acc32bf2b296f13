"""What processes and threads use, as the benchmark sees it."""

import os
import subprocess
import sys
import threading
import time

import pytest

from benchmarks.process_figures import (
    busiest_thread,
    cpu_seconds,
    resident_mb,
    thread_seconds,
    timed,
    wait_for_rest,
)


class Itself:
    """This process in the place of a broker."""

    bootstrap = "nowhere:0"
    pid = os.getpid()


def test_the_cpu_of_a_process_is_what_it_says_itself() -> None:
    """The clock that is read from outside is the process's own."""
    before = time.process_time()
    seen = cpu_seconds(os.getpid())
    assert before <= seen <= time.process_time()


def test_the_cpu_of_children_is_counted_while_they_run_and_after() -> None:
    """A broker may have work done by processes of its own."""
    alone = cpu_seconds(os.getpid(), with_children=True) - cpu_seconds(os.getpid())
    burn = (
        "import sys, time; t = time.process_time\nwhile t() < 0.2: pass\nprint(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = cpu_seconds(os.getpid(), with_children=True) - cpu_seconds(os.getpid())
        assert running - alone >= 0.15  # the two looks of a difference are not at the same moment
        assert resident_mb(os.getpid()) > 1
    after = cpu_seconds(os.getpid(), with_children=True) - cpu_seconds(os.getpid())
    assert after - alone >= 0.15


def test_a_child_that_has_ended_has_no_memory() -> None:
    """It stays in the list of its parent's until that asks how it ended."""
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.read() == b""
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert resident_mb(os.getpid()) > 1
        with pytest.raises(ValueError, match=f"process {child.pid} has no resident memory"):
            resident_mb(child.pid)
    finally:
        child.communicate()


def test_the_busiest_thread_is_found() -> None:
    """The one that ran or wanted to run the most, also when it began in between."""
    before = {"1": (1.0, 0.0), "2": (5.0, 1.0)}
    after = {"1": (1.5, 0.0), "2": (5.2, 1.1), "3": (0.6, 0.3)}
    assert busiest_thread(before, after, 2.0) == pytest.approx((0.3, 0.15))
    assert busiest_thread({}, {}, 1.0) == (0.0, 0.0)


def test_every_thread_is_looked_at() -> None:
    """By the number that the system gave it."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    found = thread_seconds(os.getpid())
    done.set()
    thread.join()
    assert {str(os.getpid()), str(thread.native_id)} <= found.keys()


def test_a_stopwatch_sees_time_cpu_and_memory() -> None:
    """Of the broker and of this process, which is both here."""
    with timed(Itself()) as watch:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
    assert watch.seconds >= 0.05
    assert watch.broker_cpu_seconds >= 0.05
    assert watch.client > 0
    assert watch.resident_mb > 1


@pytest.mark.parametrize(
    ("program", "rests"), [("input()", True), ("print(flush=True)\nwhile True: pass", False)]
)
def test_a_process_comes_to_rest_or_not(program: str, rests: bool) -> None:
    """One that waits for something rests; one that never waits does not."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            if not rests:
                assert child.stdout is not None
                child.stdout.readline()
            assert wait_for_rest(child.pid, patience_seconds=30 if rests else 0.5) is rests
        finally:
            child.kill()
