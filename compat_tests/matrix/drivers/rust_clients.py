"""The Rust client: rust-rdkafka, with the librdkafka that its crate compiles.

The driver is built with few jobs and little optimisation. Its dependencies stay in a build directory of their own in
the cache, so that a change of the driver compiles the driver alone.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from compat_tests.kafka.jars import cache_directory, made_once
from compat_tests.matrix.clients import Client, NotHere
from compat_tests.matrix.drivers import error_names

SOURCES = Path(__file__).parent / "rust"
NAME = "rust-driver"
NEEDED = {"cargo": "install Rust", "cc": "install a C compiler", "make": "install make"}
# Above what all crates and librdkafka need on a busy machine.
BUILD_SECONDS = 3000


def _ready() -> list[str]:
    for program, remedy in NEEDED.items():
        if shutil.which(program) is None:
            raise NotHere(f"no {program}: {remedy}")
    sources = sorted([SOURCES / "Cargo.toml", *(SOURCES / "src").glob("*.rs")])
    content = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]
    target = cache_directory() / "matrix" / f"{NAME}-{content}"
    return [str(made_once(target, "compiling the Rust client", _build) / NAME)]


def _build(scratch: Path) -> None:
    crate = scratch / "crate"
    shutil.copytree(SOURCES, crate)
    build = cache_directory() / "matrix" / "rust-build"
    try:
        subprocess.run(
            ["cargo", "build", "--quiet", "--jobs", "2"],
            cwd=crate,
            env={**os.environ, "CARGO_TARGET_DIR": str(build)},
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.strip()]
        raise NotHere(f"cargo could not build it: {' / '.join(lines[-3:])}") from None
    except subprocess.TimeoutExpired:
        raise NotHere(f"cargo did not build it within {BUILD_SECONDS} s") from None
    (scratch / "result").mkdir()
    shutil.copy2(build / "debug" / NAME, scratch / "result" / NAME)


CLIENTS = [Client("rust-rdkafka", "rust-rdkafka (librdkafka)", "Rust", _ready, error_names.ENVIRONMENT)]
