"""Ottla as a user runs it: `python -m ottla serve` in a process of its own, on a port it picks itself.

Ready is what the command says: its first line on standard output with an address in it.
"""

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Self

from compat_tests.broker_process import BrokerFailed, BrokerProcess

START_SECONDS = 30
ADDRESS = re.compile(r"://([^\s,]+):(\d+)")
CHECKOUT = Path(__file__).resolve().parents[1]


class OttlaProcess(BrokerProcess):
    """The `ottla` command."""

    name = "ottla"
    ready_line = ""

    def start(self) -> Self:
        """Start it and wait for its ready line."""
        command = [sys.executable, "-m", "ottla", "serve", "--data", str(self.data_dir)]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        for name, value in {"group.initial.rebalance.delay.ms": "0", **self.properties}.items():
            command += ["--set", f"{name}={value}"]
        process = self._spawn(command, ("PYTHONPATH", str(CHECKOUT)), ("PYTHONUNBUFFERED", "1"))
        assert process.stdout is not None
        self._output = _Output(process.stdout, self.log_path)
        line = self._output.line_with_address(START_SECONDS)
        if line is None:
            raise BrokerFailed(f"ottla did not become ready; it last wrote:\n{self.log_tail()}")
        self.ready_line = line
        found = ADDRESS.search(line)
        assert found is not None
        self.port = int(found[2])
        return self

    def _stdout(self, log: IO[str]) -> IO[str] | int:
        return subprocess.PIPE

    def _forget_process(self) -> None:
        super()._forget_process()
        self._output.join()


class _Output:
    """Drains the process's standard output into its log, and notices the ready line."""

    def __init__(self, stream: IO[str], log_path: Path) -> None:
        self._stream = stream
        self._log_path = log_path
        self._line: str | None = None
        self._decided = threading.Event()
        self._thread = threading.Thread(target=self._drain, name="ottla-output", daemon=True)
        self._thread.start()

    def line_with_address(self, timeout_seconds: float) -> str | None:
        """The first line that names an address; None if there was none in time or the process ended."""
        self._decided.wait(timeout_seconds)
        return self._line

    def join(self) -> None:
        self._thread.join()

    def _drain(self) -> None:
        with self._stream, self._log_path.open("a") as log:
            for line in self._stream:
                log.write(line)
                log.flush()
                if self._line is None and ADDRESS.search(line):
                    self._line = line.strip()
                    self._decided.set()
        self._decided.set()
