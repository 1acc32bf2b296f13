"""Compile the C sources of this room into `_speed`, beside them: `python native/build.py`.

The build of the package calls `build`, too. Where it does not succeed the broker is complete without: `build` says why,
and the package is installed without it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOM = Path(__file__).resolve().parent
FLAGS = [
    "-O3",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-std=c11",
]


def target() -> Path:
    """The file that `import ottla.native._speed` looks for with this Python."""
    return ROOM / f"_speed{sysconfig.get_config_var('EXT_SUFFIX')}"


def build() -> str | None:
    """Compile; returns why it did not succeed."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    sources = sorted(map(str, ROOM.glob("*.c")))
    unfinished = target().with_suffix(f".{os.getpid()}")
    apple = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    command = [*compiler, *FLAGS, *apple, f"-I{include}", *sources, "-o", str(unfinished)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            return done.stderr.strip() or f"{compiler[0]} ended with {done.returncode}"
        unfinished.replace(target())  # a broker that runs keeps the file it has opened
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(build())
