"""What both brokers under test have in common: a process with a data directory and an address.

It is started, stopped gracefully, killed, and started again on the same directory and port.
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from compat_tests.kafka.tools import run_tool

METADATA_KEY = 3
METADATA_VERSION = 1


class BrokerFailed(RuntimeError):
    """The broker did not come up, or did not stop; says what it last wrote."""


class BrokerProcess(ABC):
    """A broker as a process of its own. Use it as a context manager, or call `start` and `stop`."""

    name: str

    def __init__(
        self, data_dir: Path | None = None, properties: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix=f"{self.name}-")
        self.scratch_dir = Path(self._scratch.name)
        self.data_dir = data_dir if data_dir is not None else self.scratch_dir / "data"
        self.properties = dict(properties or {})
        self.port = port
        self.process: subprocess.Popen[str] | None = None
        self.spawned_at = 0.0  # by time.perf_counter
        self.log_path = self.scratch_dir / "broker.log"

    def prepare(self) -> None:
        """Settle before the start on which port it will be, and what an operator does once per directory."""
        if not self.port:
            [self.port] = free_ports(1)

    @abstractmethod
    def start(self) -> Self:
        """Start and return once it serves; again on the same port after the first time."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        assert self.process is not None, "the broker does not run"
        return self.process.pid

    def send_signal(self, number: signal.Signals) -> None:
        """Send the process a signal and return at once."""
        os.kill(self.pid, number)

    def wait(self, timeout_seconds: float = 60) -> int:
        """Wait for the process to end; its exit code, negative if by a signal."""
        assert self.process is not None
        try:
            code = self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise BrokerFailed(f"{self.name} did not stop; it last wrote:\n{self.log_tail()}") from None
        self._forget_process()
        return code

    def stop(self) -> int:
        """Stop gracefully with SIGTERM; the exit code."""
        self.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """kill -9: no chance to flush or to say goodbye."""
        self.send_signal(signal.SIGKILL)
        self.wait()

    def tool(self, main_class: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools with `--bootstrap-server` set to this broker."""
        return run_tool(main_class, "--bootstrap-server", self.bootstrap, *arguments, stdin=stdin)

    def log_tail(self, lines: int = 30) -> str:
        """The last lines that the broker wrote."""
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _spawn(self, command: list[str], *environment: tuple[str, str]) -> subprocess.Popen[str]:
        assert self.process is None, "the broker runs already"
        with self.log_path.open("a") as log:
            self.spawned_at = time.perf_counter()
            self.process = subprocess.Popen(
                [*dying_with_its_parent(), *command],
                stdin=subprocess.DEVNULL,
                stdout=self._stdout(log),
                stderr=log,
                text=True,
                cwd=self.scratch_dir,
                env={**os.environ, **dict(environment)},
            )
        return self.process

    def _stdout(self, log: IO[str]) -> IO[str] | int:
        return log

    def _forget_process(self) -> None:
        self.process = None

    def close(self) -> None:
        """End it if it runs, and remove what is not the caller's."""
        if self.process is not None:
            self.kill()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        try:
            return self if self.process is not None else self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def dying_with_its_parent() -> list[str]:
    """A prefix for a command, so that no process is left over when a test run is killed; Linux only."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv and sys.platform == "linux" else []


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()


def serves(port: int, timeout_seconds: float = 2) -> bool:
    """Whether a broker answers there and counts itself among the brokers of its cluster."""
    request = struct.pack(">hhihi", METADATA_KEY, METADATA_VERSION, 1, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout_seconds) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.makefile("rb").read(12)
    except OSError:
        return False
    if len(answer) < 12:
        return False
    _size, _correlation_id, brokers = struct.unpack(">iii", answer)
    return bool(brokers > 0)
