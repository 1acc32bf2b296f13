"""The Go clients of the matrix where there is no Go, and the format of their sources where there is."""

import shutil
import subprocess
from pathlib import Path

import pytest

from compat_tests.matrix.clients import NotHere, client_named
from compat_tests.matrix.drivers.go_clients import MODULE


@pytest.mark.parametrize("name", ["franz-go", "sarama"])
def test_without_go_the_clients_are_not_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without Go says so instead of failing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotHere, match="no Go"):
        client_named(name).ready()


def test_an_old_go_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries need a newer Go than many machines have."""
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go version go1.21.13 linux/amd64\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(NotHere, match=r"go1\.21\.13 .* is too old"):
        client_named("franz-go").ready()


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="no gofmt on PATH")
def test_the_sources_are_formatted() -> None:
    """All Go is as gofmt writes it."""
    done = subprocess.run(["gofmt", "-l", str(MODULE)], capture_output=True, text=True, check=True)
    assert done.stdout == ""
