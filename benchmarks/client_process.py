"""A client as a process of its own, so that what it costs is not the harness's, and what the harness does not its.

`run_client(broker, produce, topic="t", ...)` calls `produce(broker, topic="t", ...)` of any module in this package in a
new process and gives back the stopwatch that the function returned.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.process_figures import Stopwatch, Target

PATIENCE_SECONDS = 300
CHECKOUT = Path(__file__).resolve().parents[1]


class ClientFailed(RuntimeError):
    """A client ended otherwise than it should; says what it last wrote."""


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that another process has started."""

    bootstrap: str
    pid: int


def client_command(broker: Target, function: Callable[..., Stopwatch], **arguments: Any) -> list[str]:
    """The command line that calls a function in a process of its own."""
    called = {"bootstrap": broker.bootstrap, "pid": broker.pid, "arguments": arguments}
    place = f"{function.__module__}:{function.__name__}"
    return [sys.executable, "-m", "benchmarks.client_process", place, json.dumps(called)]


def run_client(broker: Target, function: Callable[..., Stopwatch], **arguments: Any) -> Stopwatch:
    """Call the function in a process of its own."""
    done = subprocess.run(
        client_command(broker, function, **arguments),
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ClientFailed(f"{function.__name__} failed: {done.stderr.strip()[-500:]}")
    return Stopwatch(**json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Call what the command line names, and print what it returns."""
    place, text = sys.argv[1:]
    module, _, name = place.partition(":")
    called = json.loads(text)
    function = getattr(importlib.import_module(module), name)
    watch = function(RunningBroker(called["bootstrap"], called["pid"]), **called["arguments"])
    print(json.dumps(asdict(watch)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
