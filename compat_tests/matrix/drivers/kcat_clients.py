"""kcat, the command-line client."""

import shutil
import sys

from compat_tests.matrix.clients import Client, NotHere


def _ready() -> list[str]:
    if shutil.which("kcat") is None:
        raise NotHere("no kcat: install the package kcat (Debian and Ubuntu: apt install kcat)")
    return [sys.executable, "-m", "compat_tests.matrix.drivers.kcat_driver"]


CLIENTS = [Client("kcat", "kcat (librdkafka)", "C", _ready)]
