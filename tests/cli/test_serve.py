"""The `ottla` command: settings, refusals in one sentence, the ready line and the exit codes."""

import contextlib
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, produce
from ottla.cli.arguments import ServeArguments, plain_serve
from ottla.cli.parser import parser_of_commands
from ottla.cli.serve import allow_many_files, read_settings
from ottla.config.definition import ConfigError
from ottla.testing import Broker


def parsed(*arguments: str) -> ServeArguments:
    return parser_of_commands().parse_args(arguments, ServeArguments())


def settings(*arguments: str) -> dict[str, str]:
    return read_settings(parsed("serve", *arguments))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--data", "here", "--listen", "localhost:0", "--listen", "A://[::1]:0"],
        ["--data=here", "--set", "a=b=c", "--set=d=e", "--log-level", "debug", "--config", "file"],
        ["--data=", "--set=", "--log-level=error"],
    ],
)
def test_a_plain_serve_is_read_as_argparse_reads_it(arguments: list[str]) -> None:
    """The quick way gives what the thorough one gives."""
    plain = plain_serve(["serve", *arguments])
    assert plain is not None
    thorough = vars(parsed("serve", *arguments))
    assert thorough.pop("command") == "serve"
    assert vars(plain) == thorough


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["log", "dump", "x"],
        ["--version"],
        ["serve", "--help"],
        ["serve", "--data"],
        ["serve", "--data", "--listen"],
        ["serve", "--dat", "x"],
        ["serve", "--log-level", "loud"],
        ["serve", "x"],
        ["serve", "--", "x"],
    ],
)
def test_what_is_not_plain_is_left_to_argparse(arguments: list[str]) -> None:
    """Mistakes, abbreviations and other commands."""
    assert plain_serve(arguments) is None


def test_without_settings_only_this_machine_can_connect() -> None:
    """No authentication, no open door."""
    assert settings() == {"listeners": "PLAINTEXT://127.0.0.1:9092"}


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    """File, then --data and --listen, then --set."""
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/from/file\nnum.partitions = 3\nlisteners=PLAINTEXT://:1\n")
    merged = settings(
        "--config", str(file), "--data", "here", "--listen", "localhost:0", "--set", "num.partitions=5"
    )
    assert merged == {"log.dirs": "here", "num.partitions": "5", "listeners": "PLAINTEXT://localhost:0"}


def test_several_listeners_with_names_and_ipv6() -> None:
    """--listen may be given again and may name its listener."""
    merged = settings("--listen", "A://[::1]:0", "--listen", "B://:0")
    assert merged["listeners"] == "A://[::1]:0,B://:0"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--set", "novalue"], "novalue"),
        (["--set", "=x"], "=x"),
        (["--listen", "localhost"], "localhost"),
        (["--listen", "localhost:http"], "localhost:http"),
        (["--config", "no-such-file.properties"], "no-such-file.properties"),
    ],
)
def test_mistakes_are_named(arguments: list[str], named: str) -> None:
    """One sentence that has the culprit in it."""
    with pytest.raises(ConfigError, match=re.escape(named)):
        settings(*arguments)


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        ("num.partitons=3", "num.partitons"),
        ("num.partitions=many", "num.partitions"),
        ("num.network.threads=0", "num.network.threads"),
        ("listeners=SSL://127.0.0.1:0", "SSL"),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "0.0.0.0"),
    ],
)
def test_a_wrong_setting_is_refused_with_one_line(tmp_path: Path, assignment: str, named: str) -> None:
    """Exit code 1, one line on standard error, no traceback, nothing on the disk."""
    ended = run("serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--set", assignment)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("ottla: ")
    assert named in ended.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("below", ["", "data"])
def test_a_data_directory_that_cannot_be_is_refused_with_one_line(tmp_path: Path, below: str) -> None:
    """A file where the directory, or one above it, should be: exit code 1 and a sentence, no traceback."""
    (tmp_path / "file").write_text("a note")
    ended = run("serve", "--data", str(tmp_path / "file" / below), "--listen", "127.0.0.1:0")
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith(f"ottla: cannot use {tmp_path / 'file'}")


def test_ready_line_and_graceful_stop(tmp_path: Path) -> None:
    """One line with address, directory, topics and time; SIGTERM ends with 0."""
    command = [sys.executable, "-m", "ottla", "serve", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert re.fullmatch(
        rf"ottla ready: PLAINTEXT://127\.0\.0\.1:\d+, data {re.escape(str(tmp_path))}, 0 topics, "
        r"started in \d+\.\d{3} s\n",
        line,
    )
    assert rest == ""
    assert process.returncode == 0


def test_as_many_descriptors_as_the_system_allows() -> None:
    """A shell's low limit would be reached by a thousand partitions."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[1], 256), limits[1]))
        allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limits[1], limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_table_of_descriptors_is_large_from_the_beginning() -> None:
    """As large as it becomes with thousands of connections; nothing stays open for that."""
    script = (
        "import os\nfrom ottla.cli.serve import allow_many_files\n"
        "before = os.listdir('/proc/self/fd')\nallow_many_files()\nassert os.listdir('/proc/self/fd') == before\n"
        "print(open('/proc/self/status').read())"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    [size] = re.findall(r"FDSize:\s+(\d+)", told.stdout)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert int(size) >= (16_384 if most == resource.RLIM_INFINITY else min(most, 16_384))


def test_version_and_help() -> None:
    """They answer without starting anything."""
    assert run("--version").stdout.startswith("ottla ")
    assert "serve" in run("--help").stdout


def test_a_disk_that_is_full_ends_the_only_directory(tmp_path: Path) -> None:
    """One sentence and exit code 1, as Kafka does when its last log directory fails. What was acknowledged is
    there when there is room again."""
    limit_bytes = 12 << 20  # for each file: a stand-in for a full disk that needs no rights
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_bytes}, {limit_bytes}));"
        "from ottla.cli.main import main; raise SystemExit(main())"
    )
    arguments = ["serve", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        bootstrap = ready_address(process.stdout.readline())
        acknowledged = 0
        with RawClient.to(bootstrap) as raw:
            create_topic(raw, "t", max_message_bytes="2000000")
            with contextlib.suppress(AssertionError, RuntimeError):
                for _ in range(20):
                    produce(raw, "t", [1], value=bytes(1 << 20))
                    acknowledged += 1
        errors = process.stderr.read()
        assert process.wait(30) == 1
    assert 8 <= acknowledged <= 12
    assert [line for line in errors.splitlines() if line.startswith("ottla: ")] == [
        f"ottla: The log directory {tmp_path}, which holds the metadata, has failed: [Errno 27] File too large."
    ]
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert produce(raw, "t", [1]).base_offset == acknowledged


def ready_address(line: str) -> str:
    found = re.search(r"PLAINTEXT://(\S+?),", line)
    assert found is not None, line
    return found[1]
