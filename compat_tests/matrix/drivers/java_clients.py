"""Apache Kafka's own Java clients, 4.3 and 3.9: one source of the driver, compiled against each.

The classes lie in the cache under a name that changes with the source.
"""

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from compat_tests.kafka.jars import (
    KAFKA_VERSION,
    OLDER_VERSION,
    JarsUnavailable,
    cache_directory,
    compile_java,
    java_executable,
    kafka_classpath,
    made_once,
    older_clients_classpath,
)
from compat_tests.kafka.tools import QUICK_START, QUIET_LOG
from compat_tests.matrix.clients import Client, NotHere

SOURCES = Path(__file__).parent / "java"


def _ready(version: str, difference: str, classpath: Callable[[], str]) -> list[str]:
    sources = sorted([*SOURCES.glob("*.java"), *(SOURCES / difference).glob("*.java")])
    try:
        jars = classpath()
        classes = compiled(f"java-driver-{version}", sources, jars)
        java = java_executable()
    except JarsUnavailable as error:
        raise NotHere(f"no Java or no jars: {error}") from None
    return [java, "-Xmx256m", *QUICK_START, *QUIET_LOG, "-cp", f"{classes}{os.pathsep}{jars}", "Driver"]


def compiled(name: str, sources: list[Path], classpath: str) -> Path:
    """The directory with the classes of these sources, compiled when they are new or have changed."""
    content = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]

    def compile_all(scratch: Path) -> None:
        compile_java(sources, scratch / "result", classpath)

    target = cache_directory() / "matrix" / f"{name}-{content}"
    return made_once(target, f"compiling {name}", compile_all)


CLIENTS = [
    Client(
        "java",
        "Java kafka-clients 4.3",
        "Java",
        functools.partial(_ready, KAFKA_VERSION, "newer", kafka_classpath),
    ),
    Client(
        "java-3.9",
        "Java kafka-clients 3.9",
        "Java",
        functools.partial(_ready, OLDER_VERSION, "older", older_clients_classpath),
    ),
]
