"""The page of the benchmark: tables, what is not met, plots, and sections that stay."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from benchmarks import page, results
from benchmarks.bench import KAFKA, MACHINE, OTTLA, Part
from benchmarks.measures import Aim, Entry, Measure
from benchmarks.page import summary, write_page
from benchmarks.parts import PARTS
from benchmarks.report import Section, row_of, table, table_of
from benchmarks.results import PartResults, Pass, load, save

SPEED = Measure("speed", "MB/s", True, Aim(ratio_at_least=1.3))
CPU = Measure("speed: broker CPU", "s/GB", False, Aim(ratio_at_most=0.5))
PLAIN = Measure("plain", "ms", False)


def two_rounds(part: str = "produce") -> PartResults:
    return PartResults(
        part,
        "2026-01-01",
        "0.1.0",
        "abc1234",
        rounds=[
            {
                OTTLA: Pass(
                    {"speed": Entry(150, 40, 0.5, 0, 1.5)}, {"p50_ms": 0.1, "p99_ms": 1, "p999_ms": 2}
                ),
                KAFKA: Pass({"speed": Entry(100, 900, 0.5, 0, 1.5)}),
            },
            {OTTLA: Pass({"speed": Entry(160, 42, 0.5, 0, 1.5)}), KAFKA: Pass({"speed": Entry(100, 950)})},
        ],
    )


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short run's results and page in a directory of the test."""
    monkeypatch.setattr(results, "QUICK_DIRECTORY", tmp_path / "results")
    monkeypatch.setattr(page, "QUICK_PAGE", tmp_path / "benchmarks.md")


def test_a_row_has_ratio_spread_aim_limit_and_memory() -> None:
    """Everything that was seen of a figure, in one line."""
    row = row_of(SPEED, two_rounds().entries("speed", (OTTLA, KAFKA)))
    line = table_of([row]).splitlines()[-1]
    assert line == (
        "| speed | 155 MB/s | 100 MB/s | 1.55 × ↑ | 1.50–1.60 | ≥ 1.3 × | met | broker | 41 / 925 MB |"
    )


def test_columns_that_nobody_fills_are_left_out() -> None:
    """Figures without an aim, a client or rounds make a narrow table."""
    text = table({OTTLA: [{PLAIN: 1.0}], KAFKA: [{PLAIN: 2.0}]})
    assert text.splitlines()[0] == "|  | Ottla | Apache Kafka | Ottla ÷ Kafka |"
    assert text.splitlines()[-1] == "| plain | 1.00 ms | 2.00 ms | 0.50 × ↓ |"


def test_what_is_not_met_is_said_plainly() -> None:
    """With both figures, the ratio, its spread and the aim."""
    met = row_of(SPEED, [(Entry(2), Entry(1))])
    missed = row_of(CPU, [(Entry(0.8), Entry(1)), (Entry(0.7), Entry(1))])
    assert summary([met, missed]) == (
        "**1 of 2 aims are met.** Not met:\n\n"
        "- speed: broker CPU: 0.75 s/GB against 1.00 s/GB, 0.75 ×, 0.70 to 0.80 (aim ≤ 0.5 ×)\n"
    )
    assert summary([met]) == "**1 of 1 aims are met.**\n"
    alike = [(Entry(each, client=0.95, cores=1.2), Entry(1)) for each in (0.99, 0.98, 1.02)]
    assert summary([met, row_of(SPEED, alike)]) == (
        "**1 of 2 aims are met.**\n\nEven with Kafka:\n\n"
        "- speed: 0.99 MB/s against 1.00 MB/s, 0.99 ×, 0.98 to 1.02 (aim ≥ 1 ×)\n"
    )


@pytest.mark.usefixtures("_elsewhere")
def test_results_come_back_as_they_were_written() -> None:
    """A file for each part."""
    saved = two_rounds()
    save(saved, quick=True)
    assert load("produce", quick=True) == saved
    assert load("consume", quick=True) is None


def test_a_round_without_one_of_the_brokers_is_not_compared() -> None:
    """A part that failed on one broker in one round keeps the other rounds."""
    found = two_rounds()
    del found.rounds[0][KAFKA]
    assert [pair[0].value for pair in found.entries("speed", (OTTLA, KAFKA))] == [160]


@pytest.mark.usefixtures("_elsewhere")
def test_sections_of_others_stay(tmp_path: Path) -> None:
    """A run of some parts writes theirs, and leaves what other modules have written."""
    (tmp_path / "benchmarks.md").write_text("# Benchmarks\n\n## Compaction\n\nquick\n\n## Produce\n\nold\n")
    part = Part("produce", Section("Produce", "Words.\n{rounds}"), (SPEED,), lambda bench: None)
    found = two_rounds()
    for each in found.rounds:
        each[OTTLA].lag = {"p50_ms": 0.1, "p99_ms": 1.0, "p999_ms": 2.0, "max_ms": 3.0, "work_max_ms": 1.0}
        each[OTTLA].lag["blocked_max_ms"] = 0.5
    found.rounds[1][OTTLA].lag["work_max_ms"] = 2.0
    found.rounds[1][OTTLA].longest_work = "connection.on_ready/log.append/files.append"
    save(found, quick=True)
    written = write_page([part], quick=True).read_text()
    titles = [line for line in written.splitlines() if line.startswith("## ")]
    assert titles == ["## Produce", "## Loop lag", "## Compaction"]
    assert "quick" in written
    assert "old" not in written
    assert (
        "Words.\nFigures are medians of 2 rounds, taken on 2026-01-01 on abc1234.\n\n|  | Ottla |" in written
    )
    assert "| produce | 0.10 ms | 1.00 ms | 2.00 ms | 3.00 ms | 0.50 ms |" in written
    assert "| 1.50 ms | 2.00 ms | | | `log.append` → `files.append` |" in written
    assert "![" in written


@pytest.mark.usefixtures("_elsewhere")
def test_every_plot_is_sound_xml(tmp_path: Path) -> None:
    """Made-up figures for everything there is to measure; each plot named on the page can be read."""
    for part in PARTS:
        names = (MACHINE,) if part.is_of_machine else (OTTLA, KAFKA)
        entries = {measure.title: Entry(2.0 + number) for number, measure in enumerate(part.measures)}
        save(
            PartResults(part.name, "2026-01-01", "0.1.0", rounds=[{name: Pass(entries) for name in names}]),
            quick=True,
        )
    written = write_page(PARTS, quick=True).read_text()
    plots = [line.partition("](")[2].rstrip(")") for line in written.splitlines() if line.startswith("![")]
    assert len(plots) == 10
    for plot in plots:
        root = ElementTree.parse(tmp_path / plot).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
