"""A Java program that goes on until it is ended: a Connect worker, MirrorMaker, a Streams application."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from compat_tests.broker_process import dying_with_its_parent
from compat_tests.kafka.jars import java_executable
from compat_tests.kafka.tools import QUICK_START, QUIET_LOG
from compat_tests.matrix.case import Unmet

STOP_SECONDS = 30


class JavaProcess:
    """A running main class, with what it writes in a file of its directory. Use it as a context manager.

    It is ended gracefully at the end of the block, or before with `stop` or `kill`. One that `waits` for the end of its
    standard input is given one without an end.
    """

    def __init__(
        self,
        main_class: str,
        arguments: Sequence[str],
        *,
        classpath: str,
        directory: Path,
        memory: str = "384m",
        waits: bool = False,
    ) -> None:
        self.main_class = main_class
        self._log = directory / f"{main_class.rpartition('.')[2]}.log"
        options = [f"-Xmx{memory}", *QUICK_START, *QUIET_LOG, f"-Djava.io.tmpdir={directory}"]
        command = [java_executable(), *options, "-cp", classpath, main_class, *arguments]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [*dying_with_its_parent(), *command],
                stdin=subprocess.PIPE if waits else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env=dict(os.environ),
            )

    def check(self) -> None:
        """Fail the case if it has ended by itself."""
        if self._process.poll() is not None:
            raise Unmet(f"{self.main_class} ended by itself; it last wrote:\n{self.last_words()}")

    def last_words(self, lines: int = 15) -> str:
        """The last lines that it wrote."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """End it as a user does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(signal.SIGTERM if kind is None else signal.SIGKILL)
        if isinstance(error, Unmet) and self._log.exists():
            error.args = (f"{error}\n{self.main_class} last wrote:\n{self.last_words()}",)


def write_properties(path: Path, properties: Mapping[str, str]) -> str:
    """Write a file of Java properties; its path."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)
