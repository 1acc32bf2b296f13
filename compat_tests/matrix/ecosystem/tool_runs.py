"""Running Kafka's command-line tools in a case: what they print, in a form in which two brokers can be compared."""

import base64
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from compat_tests.kafka.tools import run_tool
from compat_tests.matrix.case import Run, expect

AREA = "Kafka's tools"
TOOLS = "org.apache.kafka.tools"
PATIENCE_SECONDS = 120
# What no two clusters have in common.
VARIABLE = (
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r'"log_dirs":\["/[^"]*"\]'), '"log_dirs":["DIRECTORY"]'),
    (
        re.compile(r"(console-\S*?consumer|consumer|member)-[0-9a-zA-Z_-]*-?[0-9a-f]{8}-[0-9a-f-]{27}"),
        r"\1-ID",
    ),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "0"),
)


def say(run: Run, main_class: str, *arguments: str, stdin: str = "") -> list[str]:
    """The lines that a tool printed, without what differs between clusters; it must succeed."""
    done = _run(run, main_class, arguments, stdin)
    expect(done.returncode, 0, f"{' '.join(done.args[-8:])}: {done.stdout}{done.stderr}: the exit code")
    return plain(run, done.stdout)


def refusal(run: Run, main_class: str, *arguments: str) -> list[object]:
    """The exit code of a tool that is refused, and the exceptions that it names: the words are the broker's own."""
    done = _run(run, main_class, arguments)
    names = set(re.findall(r"\b(\w+Exception)\b", done.stdout + done.stderr)) - {"ExecutionException"}
    expect(
        names != set(),
        True,
        f"{' '.join(done.args[-8:])}: {done.stdout}{done.stderr}: whether it was refused",
    )
    return [done.returncode, *sorted(names)]


def _run(
    run: Run, main_class: str, arguments: Sequence[str], stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    name = main_class if main_class.startswith("kafka.") else f"{TOOLS}.{main_class}"
    given = arguments if "BROKER" in arguments else ("--bootstrap-server", "BROKER", *arguments)
    if name.endswith("GroupCommand"):
        # Left to itself it gives up after five seconds, in which not every machine brings a JVM to speed.
        given = (*given, "--timeout", str(PATIENCE_SECONDS * 1000))
    words = [each.replace("BROKER", run.bootstrap) for each in given]
    return run_tool(name, *words, stdin=stdin, timeout_seconds=PATIENCE_SECONDS)


def plain(run: Run, text: str) -> list[str]:
    """Lines with single spaces between words; the traces of exceptions end with their first line."""
    text = text.replace(run.bootstrap, "BROKER").replace(run.bootstrap.partition(":")[2], "PORT")
    for pattern, word in VARIABLE:
        text = pattern.sub(word, text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [
        line
        for line in lines
        if line and not re.match(r"at \S+\(|\.\.\. \d+ more|\[\S+\] (WARN|ERROR)", line)
    ]


def produce(run: Run, topic: str, values: Sequence[str], partition: int = 0) -> None:
    """Write values to a partition, without the tools."""
    records: list[dict[str, Any]] = [
        {
            "partition": partition,
            "key": None,
            "value": base64.b64encode(value.encode()).decode(),
            "headers": [],
            "timestamp": 1_700_000_000_000 + number,
        }
        for number, value in enumerate(values)
    ]
    run.stage.call("produce", topic=topic, records=records, acks=-1, codec="none", idempotent=True)
