"""Transactional clients of all libraries as the tests start and order them about."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from compat_tests.broker_process import dying_with_its_parent
from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath, older_clients_classpath
from compat_tests.kafka.tools import QUICK_START
from compat_tests.ottla_process import CHECKOUT

JAVA_SOURCE = Path(__file__).parents[1] / "kafka" / "java" / "TransactionalClient.java"
JAVA_CLASSPATHS = {"java-4.3": kafka_classpath, "java-3.9": older_clients_classpath}
CLIENTS = ("confluent", "kafka_python", "aiokafka_library", "java-3.9", "java-4.3")

# An end that was refused with one of these words in its name was refused for good.
FENCED = ("fenced", "epoch", "mapping")


class ClientFailed(Exception):
    """The library raised an error; its name."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name} {detail}")
        self.name = name

    @property
    def is_fenced(self) -> bool:
        return any(word in self.name.lower() for word in FENCED)


class ClientProcess:
    """A process of compat_tests/transactional."""

    def __init__(self, library: str, scratch: Path, **settings: str) -> None:
        words = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        if library in JAVA_CLASSPATHS:
            classpath = f"{_java_classes()}{os.pathsep}{JAVA_CLASSPATHS[library]()}"
            command = [java_executable(), "-Xmx128m", *QUICK_START, "-cp", classpath, "TransactionalClient"]
        else:
            command = [sys.executable, "-m", "compat_tests.transactional", library]
        self._errors_path = scratch / f"client-{id(self)}.txt"
        with self._errors_path.open("w") as errors:
            self._process = subprocess.Popen(
                [*dying_with_its_parent(), *command, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            )

    def order(self, *words: str) -> None:
        """Tell it something."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

    def listen(self) -> list[str]:
        """The words of its next line; none when it has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return line.split() if line.endswith("\n") else []

    def ask(self, *words: str) -> list[str]:
        """Tell it something and wait for the answer."""
        self.order(*words)
        answer = self.listen()
        assert answer, f"the client ended at {words}: {self.errors()}"
        kind, *rest = answer
        if kind == "error":
            raise ClientFailed(rest[0], " ".join(rest[1:]))
        return rest

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def errors(self) -> str:
        """The end of what it wrote on standard error."""
        return self._errors_path.read_text(errors="replace")[-2000:]


@functools.cache
def _java_classes() -> str:
    """The compiled client, for both versions of the library: compiled with the older one."""
    classes = tempfile.mkdtemp(prefix="transactional-client-")
    atexit.register(shutil.rmtree, classes, ignore_errors=True)
    compile_java(JAVA_SOURCE, Path(classes), older_clients_classpath())
    return classes
