"""Modules that are put off: what is there at once, and that the rest comes when it is asked for.

Each test runs in a process of its own, for this one has imported everything already.
"""

import subprocess
import sys

BEGIN = """
import sys
from ottla.cli.late_modules import LateModule, put_off_trio
put_off_trio()
"""
LATE = (
    "trio",
    "trio.lowlevel",
    "attr",
    "attrs",
    "attr.validators",
    "inspect",
    "platform",
    "traceback",
    "tokenize",
)


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_of_trio_needs_nothing_of_what_is_put_off() -> None:
    """Tasks, threads, channels and timeouts, without TLS, subprocesses or inspect."""
    script = """
import trio

async def main():
    send, receive = trio.open_memory_channel(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send.send, 1)
        assert await receive.receive() == 1
        assert await trio.to_thread.run_sync(lambda: 5) == 5
        with trio.move_on_after(0):
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        async with trio.Lock():
            pass
        with trio.open_signal_receiver(10):
            pass

trio.run(main)
print(*(name for name in ("ssl", "hashlib", "subprocess", "ctypes", "ast", "trio._socket") if name in sys.modules))
print(*(name for name in LATE if type(sys.modules[name]) is not LateModule))
"""
    assert run(f"{BEGIN}\nLATE = {LATE!r}\n{script}").split() == []


def test_what_is_asked_for_comes() -> None:
    """Every name of the whole modules is there, and is the same as in a process that put nothing off."""
    script = """
import attr, attrs, attr.validators, inspect, platform, tokenize, traceback, trio, trio.lowlevel
trio.SSLStream, trio.lowlevel.open_process, attr.evolve, attrs.evolve, attr.validators.in_
inspect.signature, platform.node, traceback.format_exc, tokenize.open
for name in LATE:
    module = sys.modules[name]
    print(name, type(module).__name__, *sorted(each for each in vars(module) if not each.startswith("_")))
"""
    late = run(f"{BEGIN}\nLATE = {LATE!r}\n{script}")
    assert late == run(f"import sys\nLATE = {LATE!r}\n{script}")


def test_a_process_runs_after_the_start() -> None:
    """As the one that compacts."""
    script = """
import trio

async def main():
    print((await trio.run_process(["echo", "hello"], capture_stdout=True)).stdout.decode())

trio.run(main)
"""
    assert run(BEGIN + script).split() == ["hello"]


def test_threads_that_ask_at_once_all_find_it() -> None:
    """Nobody sees half a module."""
    script = """
import inspect, threading
start, found = threading.Barrier(8), []

def ask(number):
    start.wait()
    found.append([inspect.signature, inspect.walktree][number % 2])

threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found))
"""
    assert run(BEGIN + script).split() == ["8"]


def test_a_trio_of_another_shape_is_imported_in_the_ordinary_way() -> None:
    """Names that are not where they were expected."""
    script = """
import sys
from ottla.cli import late_modules
late_modules._TRIO["_core"] += " never_there"
late_modules.put_off_trio()
import trio, attr
print(type(trio).__name__, type(attr).__name__, "ssl" in sys.modules)
trio.run(trio.sleep, 0)
"""
    assert run(script).split() == ["module", "module", "True"]


def test_the_states_of_a_coroutine_are_those_of_inspect() -> None:
    """What trio asks at each lock, answered without inspect and with it."""
    script = """
import inspect, types

@types.coroutine
def pause():
    yield

async def run():
    states.append(inspect.getcoroutinestate(coroutine))
    await pause()

states = []
coroutine = run()
states.append(inspect.getcoroutinestate(coroutine))
coroutine.send(None)
states.append(inspect.getcoroutinestate(coroutine))
coroutine.close()
states.append(inspect.getcoroutinestate(coroutine))
print(states, states[-1] == inspect.CORO_CLOSED, inspect.iscoroutine(coroutine), inspect.iscoroutine(run))
"""
    assert run(BEGIN + script) == run(script)


def test_a_value_of_the_wrong_type_is_refused_as_by_attrs() -> None:
    """The one validator that is not attrs' own says the same."""
    script = """
import outcome
try:
    outcome.Error("no exception")
except TypeError as error:
    print(error.args[0])
"""
    assert run(BEGIN + script) == run(script)
