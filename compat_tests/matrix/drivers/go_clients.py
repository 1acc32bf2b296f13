"""The Go clients: franz-go and sarama.

Their drivers are the commands of one Go module, go/, which pins the libraries; both are built once for each state of
its files and kept in the cache. Go fetches the libraries itself, into its own cache of modules.
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from compat_tests.kafka.jars import cache_directory, made_once
from compat_tests.matrix.clients import Client, NotHere
from compat_tests.matrix.drivers import error_names

MODULE = Path(__file__).parent / "go"
# Both libraries say so in their go.mod, and so does ours.
OLDEST_GO = (1, 26)
# Above what a cold proxy and a compiler on a busy machine need.
BUILD_SECONDS = 900


def _ready(command: str) -> list[str]:
    go = _go()
    key = hashlib.sha256(_version(go).encode())
    for source in sorted(MODULE.rglob("*")):
        if source.suffix in (".go", ".mod", ".sum"):
            key.update(f"\0{source.relative_to(MODULE)}\0".encode() + source.read_bytes())

    def build(scratch: Path) -> None:
        (scratch / "result").mkdir()
        try:
            subprocess.run(
                [go, "build", "-trimpath", "-buildvcs=false", "-o", str(scratch / "result"), "./..."],
                cwd=MODULE,
                env={**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"},
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=BUILD_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            raise NotHere(f"go build failed: {' / '.join(error.stderr.splitlines()[-3:])}") from None

    built = made_once(
        cache_directory() / "matrix" / f"go-{key.hexdigest()[:16]}", "building the Go drivers", build
    )
    return [str(built / command)]


def _go() -> str:
    go = shutil.which("go")
    needed = ".".join(map(str, OLDEST_GO))
    if go is None:
        raise NotHere(f"no Go: put {needed} or newer on PATH")
    found = re.search(r"go(\d+)\.(\d+)", _version(go))
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GO:
        raise NotHere(f"{_version(go)} is too old: put Go {needed} or newer on PATH")
    return go


@functools.cache
def _version(go: str) -> str:
    # Asked for in the module, where Go may choose a newer toolchain by itself.
    done = subprocess.run([go, "version"], cwd=MODULE, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


CLIENTS = [
    Client("franz-go", "franz-go", "Go", functools.partial(_ready, "franzgo"), error_names.ENVIRONMENT),
    Client("sarama", "sarama", "Go", functools.partial(_ready, "sarama"), error_names.ENVIRONMENT),
]
