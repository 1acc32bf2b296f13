"""A driver: a process around one client library, told one JSON object a line, answering one a line.

It dies with the process that started it. What it writes to standard error is kept in a file and shown when it fails.
"""

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

from compat_tests.broker_process import dying_with_its_parent

CHECKOUT = Path(__file__).resolve().parents[2]
# A driver answers within 30 seconds by itself; one that does not hangs.
CALL_SECONDS = 45
STOP_SECONDS = 5


class DriverError(Exception):
    """The call failed: with the broker's error by Kafka's name of it, or LOCAL when the library gave up."""

    def __init__(self, name: str, message: str = "") -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class Unsupported(Exception):
    """The library has no such call."""


class DriverGone(Exception):
    """The driver died, hung, or said what is no answer."""


class Driver:
    """A running driver. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        command: Sequence[str],
        bootstrap: str,
        environment: Mapping[str, str] | None = None,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self._call_seconds = call_seconds
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (as long as the driver)
        self._process = subprocess.Popen(
            [*dying_with_its_parent(), *command, bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(environment or {})},
        )
        assert self._process.stdout is not None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        self.lost = False

    def call(self, call: str, **arguments: object) -> Any:
        """Tell it and wait for the answer; DriverError, Unsupported or DriverGone is raised."""
        if self.lost:
            raise DriverGone("the driver is gone already")
        line = json.dumps({"call": call, **{name.rstrip("_"): value for name, value in arguments.items()}})
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answered = self._lines.get(timeout=self._call_seconds)
        except queue.Empty:
            self._give_up(f"no answer to {call} within {self._call_seconds:.0f} s")
        except (BrokenPipeError, OSError):
            self._give_up(f"the driver ended before {call}")
        if not answered:
            self._give_up(f"the driver ended during {call}")
        try:
            answer = json.loads(answered)
        except ValueError:
            self._give_up(f"{call} was answered with what is no JSON: {answered[:200]!r}")
        if "unsupported" in answer:
            raise Unsupported(answer["unsupported"])
        if "error" in answer:
            raise DriverError(str(answer["error"]), str(answer.get("message", "")))
        return answer["ok"]

    def last_words(self, lines: int = 15) -> str:
        """The last lines that it wrote to standard error."""
        self._errors.seek(0)
        return "\n".join(self._errors.read().splitlines()[-lines:])

    def close(self) -> None:
        """End it: by the end of its input first, then by force."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(0 if self.lost else STOP_SECONDS)
        except (subprocess.TimeoutExpired, OSError):
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._errors.close()
        self.lost = True

    def _give_up(self, why: str) -> NoReturn:
        self.lost = True
        self._process.kill()
        code = self._process.wait()
        words = self.last_words()
        raise DriverGone(f"{why} (exit code {code})" + (f"; it last wrote:\n{words}" if words else ""))

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put("")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
