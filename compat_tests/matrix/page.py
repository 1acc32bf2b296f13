"""docs/compatibility.md, made from the kept results: who passed how many cases of which area, and what did not pass."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_tests.matrix.brokers import NEWEST, REFERENCES
from compat_tests.matrix.clients import all_clients
from compat_tests.matrix.driver import CHECKOUT
from compat_tests.matrix.known import KNOWN, LEFT_OUT, Known
from compat_tests.matrix.picture import picture
from compat_tests.matrix.results import Area, Row, areas_of, whole

DOCS = CHECKOUT / "docs"
PAGE = "docs/compatibility.md"

INTRODUCTION = """\
# Compatibility

![passed cases of each client in each area](compatibility.svg)

Every client library runs the same cases against Ottla and against a real Apache Kafka in the same run. A case *passes*
when both brokers answered as Kafka must, and alike; anything else is a failure. What a library has no call for is
*not offered*; a client that was not on the machine is *not run*. Neither counts as passed.

Run it yourself: `make compat` for all of it, `make compat CLIENT=sarama` for one client, whose row alone is then
renewed. Both write this page. How cases and drivers look is in [compat_tests/matrix](../compat_tests/matrix/README.md).
"""


def write(rows: Sequence[Row], directory: Path = DOCS) -> None:
    """Write the page and its picture."""
    (directory / "compatibility.md").write_text(page(rows))
    (directory / "compatibility.svg").write_text(picture(_against(rows, NEWEST), _shared_names()))


def page(rows: Sequence[Row], known: Sequence[Known] = KNOWN) -> str:
    """The whole page."""
    newest = _against(rows, NEWEST)
    shared = [row for row in newest if row.client in _shared_names()]
    ecosystem = [row for row in newest if row.client not in _shared_names()]
    parts = [INTRODUCTION]
    if shared:
        parts += [f"## Clients, beside Apache Kafka {REFERENCES[NEWEST]}\n", _table(shared)]
    if ecosystem:
        parts += ["## Kafka's own tools and frameworks\n", _ecosystem(ecosystem)]
    for reference in list(REFERENCES)[1:]:
        older = _against(rows, reference)
        if older:
            parts += [f"## Beside Apache Kafka {REFERENCES[reference]}\n", OLDER, _short_table(older)]
    parts += ["## What did not pass\n", _failures(rows, known)]
    parts += [
        "## What is known to differ, and is not compared\n",
        "\n".join(f"- {each}" for each in LEFT_OUT),
        "",
    ]
    parts += ["## What a library does not offer\n", _not_offered(newest)]
    return "\n".join(parts)


OLDER = "The same cases beside an older broker, but for those that ask for what came after it.\n"


def _against(rows: Iterable[Row], reference: str) -> list[Row]:
    return [row for row in rows if row.kafka == reference]


def _shared_names() -> list[str]:
    return [client.name for client in all_clients() if client.shared]


def _table(rows: Sequence[Row]) -> str:
    areas = areas_of(rows)
    lines = [
        "| client | version | " + " | ".join(areas) + " | all | run |",
        "|---|---|" + "---:|" * (len(areas) + 1) + "---|",
    ]
    for row in rows:
        cells = [_cell(row, row.areas.get(area)) for area in areas]
        name = f"{row.title} ({row.language})" if row.language not in row.title else row.title
        lines.append(
            f"| {name} | {row.version or '–'} | {' | '.join(cells)} | {_cell(row, whole(row))} | {row.date} |"
        )
    return "\n".join(lines) + "\n" + _missing(rows)


def _ecosystem(rows: Sequence[Row]) -> str:
    lines = ["| | version | passed | cases | run |", "|---|---|---:|---|---|"]
    for row in rows:
        lines.append(
            f"| {row.title} | {row.version or '–'} | {_cell(row, whole(row))} | {', '.join(row.areas)} | {row.date} |"
        )
    return "\n".join(lines) + "\n" + _missing(rows)


def _short_table(rows: Sequence[Row]) -> str:
    lines = ["| client | version | passed | run |", "|---|---|---:|---|"]
    for row in rows:
        lines.append(f"| {row.title} | {row.version or '–'} | {_cell(row, whole(row))} | {row.date} |")
    return "\n".join(lines) + "\n" + _missing(rows)


def _cell(row: Row, area: Area | None) -> str:
    """Passed of those that the library offers."""
    if row.missing:
        return "not run"
    if area is None or area.total == len(area.not_offered):
        return "–"
    offered = area.total - len(area.not_offered)
    words = f"{area.passed}/{offered}"
    return words if area.passed == offered else f"**{words}**"


def _missing(rows: Iterable[Row]) -> str:
    lines = [f"- {row.title} was not run: {row.missing}" for row in rows if row.missing]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _failures(rows: Sequence[Row], known: Sequence[Known]) -> str:
    """Each case that failed, with why, and for whom."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        for id_, why in whole(row).failed.items():
            reason = next((each.reason for each in known if each.covers(row.client, id_)), "")
            found.setdefault((f"{REFERENCES[row.kafka]}, {id_}", reason or why), []).append(row)
    lines = [
        f"- Beside Kafka {case}: {_sentence(why)} ({', '.join(row.title for row in failed)})"
        for (case, why), failed in found.items()
    ]
    return ("\n".join(lines) if lines else "Nothing.") + "\n"


def _sentence(words: str) -> str:
    return words if words.endswith(".") else f"{words}."


def _not_offered(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        reasons: dict[str, list[str]] = {}
        for id_, why in whole(row).not_offered.items():
            reasons.setdefault(why, []).append(id_)
        if not reasons:
            continue
        count = sum(map(len, reasons.values()))
        lines.append(f"- **{row.title}** ({count} {'case' if count == 1 else 'cases'})")
        lines += [f"  - {why}: {_some(ids)}" for why, ids in reasons.items()]
    return ("\n".join(lines) if lines else "Nothing: every library offers all of it.") + "\n"


def _some(ids: Sequence[str], most: int = 4) -> str:
    rest = f" and {len(ids) - most} more" if len(ids) > most else ""
    return "; ".join(ids[:most]) + rest
