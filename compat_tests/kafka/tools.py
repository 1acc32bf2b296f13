"""Kafka's own command-line tools, run as main classes from the jars: one JVM start each, a second or so."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.kafka.jars import KAFKA_VERSION, java_executable, kafka_classpath

# A tool lives for a second: no time to pay for the optimising compiler or a concurrent collector.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
QUIET_LOG = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dlog4j2.statusLoggerLevel=off")


def java_command(
    main_class: str, *arguments: str, options: Sequence[str] = QUICK_START, version: str = KAFKA_VERSION
) -> list[str]:
    """The command line that runs one of Kafka's main classes."""
    return [java_executable(), *options, *QUIET_LOG, "-cp", kafka_classpath(version), main_class, *arguments]


def run_tool(
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout_seconds: float = 60,
    version: str = KAFKA_VERSION,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; the result has its exit code, `stdout` and `stderr`."""
    return subprocess.run(
        java_command(main_class, *arguments, version=version),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        cwd=Path(tempfile.gettempdir()),
    )
