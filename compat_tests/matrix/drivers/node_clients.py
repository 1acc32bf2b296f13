"""The Node clients: KafkaJS.

The packages of node/package.json are installed once into the cache; the drivers run from the checkout and find them by
NODE_PATH. The codecs of KafkaJS have native parts, which npm compiles.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat_tests.kafka.jars import cache_directory, made_once
from compat_tests.matrix.clients import Client, NotHere
from compat_tests.matrix.drivers import error_names

SOURCES = Path(__file__).parent / "node"
# Above what a cold npm and a C++ compiler on a busy machine need.
STEP_SECONDS = 1500


def _key() -> str:
    return hashlib.sha256((SOURCES / "package.json").read_bytes()).hexdigest()[:16]


def _packages_directory() -> Path:
    return cache_directory() / "matrix" / f"node-{_key()}"


def _run(command: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "JOBS": "2", **(environment or {})},
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=STEP_SECONDS,
    )


def _packages() -> Path:
    """The directory with node_modules; the codecs without a native part, for want of a compiler, are not usable."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NotHere("no Node: install node and npm")

    def install(scratch: Path) -> None:
        result = scratch / "result"
        result.mkdir()
        shutil.copy(SOURCES / "package.json", result)
        install = ["npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"]
        try:
            _run(install, result)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise NotHere(f"npm could not install the packages: {_last_words(error)}") from None
        for codec in ("lz4", "cppzst"):
            # The latter asks for C++ of 2011, which the headers of today's Node are not.
            with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
                _run(["npm", "rebuild", codec], result, {"CXXFLAGS": "-std=gnu++17"})

    return made_once(_packages_directory(), "installing the Node clients", install)


def _last_words(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{error.cmd[0]} took longer than {STEP_SECONDS} s"
    lines = [line for line in f"{error.stdout}\n{error.stderr}".splitlines() if line.strip()]
    return " / ".join(lines[-3:])


def _ready(driver: str) -> list[str]:
    _packages()
    return ["node", str(SOURCES / driver / "driver.js")]


ENVIRONMENT = {**error_names.ENVIRONMENT, "NODE_PATH": str(_packages_directory() / "node_modules")}
CLIENTS = [Client("kafkajs", "KafkaJS", "Node", functools.partial(_ready, "kafkajs"), ENVIRONMENT)]
