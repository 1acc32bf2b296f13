"""Running kcat, and its words for errors by Kafka's names."""

import re
import shutil
import subprocess
from typing import NoReturn

from confluent_kafka import KafkaError

from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, Refused
from ottla.wire.errors import ErrorCode

# kcat prints librdkafka's descriptions of the codes; the same library tells them here.
DESCRIPTIONS = {KafkaError(code).str(): ErrorCode(code).name for code in ErrorCode if code > 0}


class Gone(Exception):
    """kcat ended with an error of its own."""


class Command:
    """kcat with the broker's address."""

    def __init__(self, bootstrap: str) -> None:
        self.command = [str(shutil.which("kcat")), "-b", bootstrap]

    def run(self, *arguments: str) -> str:
        """What it printed."""
        return self.run_bytes(*arguments).decode()

    def run_bytes(self, *arguments: str | bytes) -> bytes:
        """What it printed, in bytes."""
        done = subprocess.run(
            [*self.command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        if done.returncode != 0:
            self.fail(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def fail(self, words: str) -> NoReturn:
        """Raise what kcat tells of."""
        name = self.name_of(words)
        raise Gone(words) if name == "LOCAL" else Refused(name, words)

    def name_of(self, words: str) -> str:
        """Kafka's name of the error that kcat tells of; LOCAL for what only librdkafka knows."""
        found = re.search(r"Broker: [^\n(]+", words)
        return DESCRIPTIONS.get(found[0].strip(), "LOCAL") if found else "LOCAL"

    def refusal(self, error: Exception) -> Refused | None:
        return None
