"""The Node clients: KafkaJS, and Confluent's client around librdkafka.

The packages of node/package.json are installed once into the cache; the drivers run from the checkout and find them by
NODE_PATH. The codecs of KafkaJS have native parts, which npm compiles. That of Confluent's client comes compiled from
its makers where their host can be reached; elsewhere it is built here with the librdkafka that is in the package, and
with the zstd that KafkaJS's codec carries, so that it needs no more than a C++ compiler and OpenSSL's headers.
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
CONFLUENT = Path("node_modules") / "@confluentinc" / "kafka-javascript"
# Above what a cold npm and a C++ compiler on a busy machine need.
STEP_SECONDS = 1500


def _key() -> str:
    return hashlib.sha256((SOURCES / "package.json").read_bytes()).hexdigest()[:16]


def _packages_directory() -> Path:
    return cache_directory() / "matrix" / f"node-{_key()}"


def _confluent_directory() -> Path:
    return cache_directory() / "matrix" / f"node-confluent-{_key()}"


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


def _confluent() -> Path:
    """The directory whose node_modules has Confluent's client with its native part."""
    packages = _packages()

    def build(scratch: Path) -> None:
        result = scratch / "result"
        shutil.copytree(packages / CONFLUENT, result / CONFLUENT)
        environment = {"NODE_PATH": str(packages / "node_modules")}
        fetch = ["node", str(packages / "node_modules" / "@mapbox" / "node-pre-gyp" / "bin" / "node-pre-gyp")]
        try:
            _run([*fetch, "install"], result / CONFLUENT, environment)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            try:
                _compile_confluent(packages, result / CONFLUENT, environment, [*fetch, "install"])
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                raise NotHere(f"its native part cannot be had: {_last_words(error)}") from None

    return made_once(_confluent_directory(), "getting the native part of Confluent's Node client", build)


def _compile_confluent(
    packages: Path, package: Path, environment: Mapping[str, str], install: Sequence[str]
) -> None:
    """Zstd, librdkafka and the package's own part, in this order; all that runs later lies in the package."""
    built = package / "built"
    zstd_source = packages / "node_modules" / "cppzst" / "deps" / "zstd" / "lib"
    shutil.copytree(zstd_source, package / "zstd")
    static = ["install-static", "install-includes"]
    _run(["make", "-j2", f"PREFIX={built}", "CFLAGS=-O2 -fPIC", *static], package / "zstd")
    flags = {"CPPFLAGS": f"-I{built / 'include'}", "LDFLAGS": f"-L{built / 'lib'}"}
    librdkafka = package / "deps" / "librdkafka"
    without = [f"--disable-{part}" for part in ("lz4-ext", "gssapi", "curl")]
    _run(["./configure", f"--prefix={built}", *without], librdkafka, flags)
    _run(["make", "-j2", "libs"], librdkafka, flags)
    _run(["make", "install-subdirs"], librdkafka, flags)
    # Left to itself the package would build librdkafka with all compilers at once. What it links stays where it is
    # when the scratch directory becomes the one in the cache.
    libraries = _confluent_directory() / CONFLUENT / "built" / "lib"
    link = f"{flags['LDFLAGS']} -Wl,-rpath,{libraries}"
    own = {"BUILD_LIBRDKAFKA": "0", "CXXFLAGS": f"-I{built / 'include' / 'librdkafka'}", "LDFLAGS": link}
    _run([*install, "--build-from-source"], package, {**environment, **own, **_headers_of_node()})


def _headers_of_node() -> dict[str, str]:
    """Where npm was told that they are; otherwise they are fetched."""
    told = subprocess.run(["npm", "config", "get", "nodedir"], capture_output=True, text=True, check=True)
    directory = told.stdout.strip()
    return {} if directory in ("", "undefined", "null") else {"npm_config_nodedir": directory}


def _last_words(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{error.cmd[0]} took longer than {STEP_SECONDS} s"
    lines = [line for line in f"{error.stdout}\n{error.stderr}".splitlines() if line.strip()]
    return " / ".join(lines[-3:])


def _ready(driver: str, confluent: bool) -> list[str]:
    _packages()
    if confluent:
        _confluent()
    return ["node", str(SOURCES / driver / "driver.js")]


ENVIRONMENT = {
    **error_names.ENVIRONMENT,
    "NODE_PATH": os.pathsep.join(
        str(directory / "node_modules") for directory in (_confluent_directory(), _packages_directory())
    ),
}
CLIENTS = [
    Client("kafkajs", "KafkaJS", "Node", functools.partial(_ready, "kafkajs", False), ENVIRONMENT),
    Client(
        "confluent-javascript",
        "@confluentinc/kafka-javascript (librdkafka)",
        "Node",
        functools.partial(_ready, "confluent", True),
        ENVIRONMENT,
    ),
]
