"""The pipeline of spark_demo as a whole, as its users start it: it ends by itself, and stream and batch agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.conftest import BROKERS
from spark_demo.formats import FORMATS

RUN_SECONDS = 900


@pytest.mark.usefixtures("java_home")
@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("name", BROKERS)
def test_stream_and_batch_agree(name: str, written: str, tmp_path: Path) -> None:
    """Exit code 0, seven comparisons, and a report with its plots."""
    report = tmp_path / "report.html"
    with BROKERS[name]() as broker:
        command = [sys.executable, "-m", "spark_demo", "--bootstrap", broker.bootstrap, "--format", written]
        command += ["--seconds", "30", "--rate", "200", "--report", str(report)]
        command += ["--conf", "spark.sql.shuffle.partitions=3", "--plots", str(tmp_path / "plots")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.count(" agrees") == 7
    assert report.read_text().count("<svg") == 8
    assert len(list((tmp_path / "plots").glob("*.svg"))) == 8
