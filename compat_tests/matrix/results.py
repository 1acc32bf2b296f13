"""What the runs found, kept in docs/compatibility.json: the page is made from it, whichever clients ran last.

One entry for each client and each Apache Kafka it was compared with; a run replaces the entries of its clients.
The answers themselves are long, and stay in `build/compat/` of the checkout.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from compat_tests.matrix.case import Case
from compat_tests.matrix.clients import Client
from compat_tests.matrix.driver import CHECKOUT
from compat_tests.matrix.judge import FAILED, NOT_OFFERED, PASSED, Verdict

RESULTS = CHECKOUT / "docs" / "compatibility.json"
DETAILS = CHECKOUT / "build" / "compat"

AREAS = (
    "connect and metadata",
    "topics",
    "configs",
    "produce",
    "fetch",
    "offsets and timestamps",
    "groups",
    "share groups",
    "transactions",
    "admin calls",
    "errors",
)


@dataclass
class Area:
    """The cases of an area: how many passed, which failed or are not offered, and why."""

    total: int = 0
    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    not_offered: dict[str, str] = field(default_factory=dict)


@dataclass
class Row:
    """A client's latest run. `missing` says why it was not run on that machine, and then there are no areas."""

    client: str
    title: str
    language: str
    version: str
    kafka: str
    ottla: str
    date: str
    seconds: float = 0
    missing: str = ""
    areas: dict[str, Area] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What a newer run replaces."""
        return self.client, self.kafka


def row(
    client: Client, version: str, kafka: str, ottla: str, verdicts: Iterable[Verdict], seconds: float
) -> Row:
    """The entry of a run."""
    made = Row(client.name, client.title, client.language, version, kafka, ottla, today(), round(seconds))
    for found in verdicts:
        area = made.areas.setdefault(found.case.area, Area())
        area.total += 1
        if found.status == PASSED:
            area.passed += 1
        elif found.status == NOT_OFFERED:
            area.not_offered[found.case.title] = found.why
        else:
            area.failed[found.case.title] = found.why
    return made


def missing_row(client: Client, kafka: str, ottla: str, why: str, cases: Iterable[Case]) -> Row:
    """The entry of a client that this machine lacks: how many cases there would be, none of them run."""
    made = Row(client.name, client.title, client.language, "", kafka, ottla, today(), missing=why)
    for case in cases:
        made.areas.setdefault(case.area, Area()).total += 1
    return made


def areas_of(rows: Iterable[Row]) -> list[str]:
    """The areas of the rows, as a reader meets them when he begins to use a broker."""
    met = dict.fromkeys(area for row in rows for area in row.areas)
    return [area for area in AREAS if area in met] + [area for area in met if area not in AREAS]


def whole(row: Row) -> Area:
    """All areas of a row in one."""
    total = Area()
    for name, area in row.areas.items():
        total.total += area.total
        total.passed += area.passed
        total.failed |= {f"{name}: {title}": why for title, why in area.failed.items()}
        total.not_offered |= {f"{name}: {title}": why for title, why in area.not_offered.items()}
    return total


def today() -> str:
    """The date of a run."""
    return datetime.now(UTC).date().isoformat()


def kept_rows(path: Path = RESULTS) -> list[Row]:
    """The entries of earlier runs."""
    if not path.exists():
        return []
    found = []
    for entry in json.loads(path.read_text())["rows"]:
        areas = {name: Area(**area) for name, area in entry.pop("areas").items()}
        found.append(Row(**entry, areas=areas))
    return found


def keep(rows: Sequence[Row], order: Sequence[str], path: Path = RESULTS) -> list[Row]:
    """Replace the entries of these clients, in the order of the table of clients; all entries there are now."""
    newest = {each.key: each for each in [*kept_rows(path), *rows]}
    kept = [each for each in newest.values() if each.client in order]
    kept.sort(key=lambda each: (each.kafka, order.index(each.client)))
    path.write_text(json.dumps({"rows": [asdict(each) for each in kept]}, indent=1) + "\n")
    return kept


def keep_details(client: Client, kafka: str, verdicts: Sequence[Verdict], directory: Path = DETAILS) -> Path:
    """Write how each case went, and what was answered in those that failed; the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{client.name}-{kafka}.json"
    entries = []
    for found in verdicts:
        entry = {"case": found.case.id, "status": found.status, "seconds": round(found.seconds, 2)}
        if found.status == FAILED:
            entry |= {"why": found.why, "ottla": found.ottla.shown(), "kafka": found.kafka.shown()}
        entries.append(entry)
    path.write_text(json.dumps(entries, indent=1) + "\n")
    return path
