"""What was measured, as JSON: a file for each part, so that a part can be run alone and none loses another's figures.

Those of a full run stand beside the page that is made from them (docs/benchmarks/results), those of a short one in
.cache/bench.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.measures import Entry

CHECKOUT = Path(__file__).resolve().parents[1]
FULL_DIRECTORY = CHECKOUT / "docs" / "benchmarks" / "results"
QUICK_DIRECTORY = CHECKOUT / ".cache" / "bench" / "results"


@dataclass(slots=True)
class Pass:
    """One broker in one round: figures by the title of their measure, how late its loop was in milliseconds, and what
    it was doing when it worked longest."""

    entries: dict[str, Entry] = field(default_factory=dict)
    lag: dict[str, float] = field(default_factory=dict)
    longest_work: str = ""


@dataclass(slots=True)
class PartResults:
    """All rounds of one part in one run; in each the passes by the broker's name."""

    part: str
    when: str
    version: str
    commit: str = ""
    other_cores: float = 0.0
    rounds: list[dict[str, Pass]] = field(default_factory=list)

    def entries(self, title: str, names: Sequence[str]) -> list[tuple[Entry, ...]]:
        """The entries of a measure in those rounds in which all of these have one."""
        found = []
        for each in self.rounds:
            row = tuple(
                each[name].entries[title] for name in names if name in each and title in each[name].entries
            )
            if len(row) == len(names):
                found.append(row)
        return found

    def lags(self, name: str) -> list[dict[str, float]]:
        return [each[name].lag for each in self.rounds if name in each and each[name].lag]

    def longest_work(self, name: str) -> str:
        """What the loop was doing in the round in which it worked longest."""
        passes = [each[name] for each in self.rounds if name in each and each[name].lag]
        return max(passes, key=lambda each: each.lag.get("work_max_ms", 0.0)).longest_work if passes else ""


def directory(quick: bool) -> Path:
    return QUICK_DIRECTORY if quick else FULL_DIRECTORY


def save(results: PartResults, quick: bool) -> None:
    """Write what there is of a part."""
    path = directory(quick) / f"{results.part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(asdict(results)), indent=1) + "\n", encoding="utf-8")


def load(part: str, quick: bool) -> PartResults | None:
    """What was last measured of a part."""
    path = directory(quick) / f"{part}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    rounds = [{name: _pass(each) for name, each in row.items()} for row in found.pop("rounds")]
    return PartResults(**found, rounds=rounds)


def _pass(found: Mapping[str, Mapping[str, object]]) -> Pass:
    entries = {title: Entry(**entry) for title, entry in found["entries"].items()}  # type: ignore[arg-type]
    return Pass(entries, dict(found["lag"]), str(found.get("longest_work", "")))  # type: ignore[arg-type]


def _rounded(value: object) -> object:
    """Five digits are more than any run repeats."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value
