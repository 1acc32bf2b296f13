"""Kafka's own message classes, for comparing bytes: a long-lived Java process behind three functions.

A class is named in full, such as `org.apache.kafka.common.message.FetchRequestData`. JSON is that of
Kafka's generated converters: names in camel case, ids and bytes in base64, only the fields that the version
has, and of tagged fields only those that differ from their default. The converters do not write out
records, only their size.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath

SOURCE = Path(__file__).parent / "java" / "MessageBridge.java"


class JavaError(Exception):
    """Kafka's class threw this."""


class MessageBridge:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def write(self, class_name: str, version: int, message: dict[str, Any]) -> bytes:
        """The bytes that Kafka makes of this JSON."""
        [data] = self._ask("write", class_name, str(version), json.dumps(message))
        return bytes.fromhex(data)

    def read(self, class_name: str, version: int, data: bytes) -> tuple[dict[str, Any], bytes, int]:
        """What Kafka reads from the bytes, as JSON and written again, and how many bytes it left unread."""
        message, again, left = self._ask("read", class_name, str(version), data.hex())
        return json.loads(message), bytes.fromhex(again), int(left)

    def errors(self) -> list[dict[str, Any]]:
        """Kafka's error table: code, name, retriable."""
        [table] = self._ask("errors")
        rows: list[dict[str, Any]] = json.loads(table)
        return rows

    def _ask(self, *words: str) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        outcome, *answer = self._process.stdout.readline().rstrip("\n").split("\t")
        if outcome != "ok":
            raise JavaError(" ".join(answer) or "the Java process ended")
        return answer


@contextmanager
def message_bridge() -> Iterator[MessageBridge]:
    """Compile and run the bridge; it ends when the block does."""
    with tempfile.TemporaryDirectory() as classes:
        compile_java(SOURCE, Path(classes), kafka_classpath())
        command = [java_executable(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp"]
        command += [f"{classes}{os.pathsep}{kafka_classpath()}", "MessageBridge"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process:
            yield MessageBridge(process)
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
