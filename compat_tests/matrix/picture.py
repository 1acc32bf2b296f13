"""The matrix as a picture, in plain SVG: a row for each client, a column for each area, green where all is well."""

from collections.abc import Sequence
from html import escape

from compat_tests.matrix.results import Area, Row, areas_of, whole

LABELS = 300
HEAD = 128
CELL_WIDTH, CELL_HEIGHT = 66, 30
GAP = 3
FOOT = 46
MARGIN = 14

GREEN, AMBER, RED, GREY, WHITE = "#2f9e5b", "#e0a526", "#d1493f", "#e4e7eb", "#ffffff"
DARK, PALE = "#1f2933", "#7b8794"


def picture(rows: Sequence[Row], shared: Sequence[str]) -> str:
    """The whole picture: clients by area, and below them what has cases of its own."""
    clients = [row for row in rows if row.client in shared]
    others = [row for row in rows if row.client not in shared]
    areas = areas_of(clients)
    columns = len(areas) + 1
    width = LABELS + columns * (CELL_WIDTH + GAP) + 2 * MARGIN + 40
    height = HEAD + (len(rows) + (1 if others else 0)) * (CELL_HEIGHT + GAP) + FOOT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{WHITE}"/>',
    ]
    if rows:
        title = f"Ottla {rows[0].ottla} beside Apache Kafka {rows[0].kafka}"
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + 18}" font-size="16" fill="{DARK}">{title}</text>')
    for number, area in enumerate([*areas, "all"]):
        x = _x(number) + CELL_WIDTH / 2
        parts.append(
            f'<text transform="translate({x:.0f},{HEAD - 8}) rotate(-38)" font-size="13" fill="{DARK}">'
            f"{escape(area)}</text>"
        )
    for line, row in enumerate(clients):
        y = HEAD + line * (CELL_HEIGHT + GAP)
        parts.append(_label(row, y))
        cells = [row.areas.get(area, Area()) for area in areas]
        for number, cell in enumerate([*cells, whole(row)]):
            parts.append(_cell(row, cell, number, y, CELL_WIDTH))
    for line, row in enumerate(others):
        y = HEAD + (len(clients) + 1 + line) * (CELL_HEIGHT + GAP)
        parts.append(_label(row, y))
        parts.append(_cell(row, whole(row), 0, y, columns * (CELL_WIDTH + GAP) - GAP))
    parts += [_legend(height - MARGIN - 8), "</svg>"]
    return "\n".join(parts) + "\n"


def _x(number: int) -> int:
    return MARGIN + LABELS + number * (CELL_WIDTH + GAP)


def _label(row: Row, y: int) -> str:
    middle = y + CELL_HEIGHT / 2 + 5
    version = f'<tspan fill="{PALE}" font-size="11"> {escape(row.version.split(" ")[0])}</tspan>'
    return f'<text x="{MARGIN}" y="{middle:.0f}" font-size="13" fill="{DARK}">{escape(row.title)}{version}</text>'


def _cell(row: Row, area: Area, number: int, y: int, width: int) -> str:
    offered = area.total - len(area.not_offered)
    if row.missing:
        fill, ink, words = WHITE, PALE, "not run"
    elif not offered:
        fill, ink, words = GREY, PALE, "–"
    else:
        fill, ink, words = _colour(area.passed, offered), WHITE, f"{area.passed}/{offered}"
    x = _x(number)
    outline = f' stroke="{GREY}"' if fill == WHITE else ""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{CELL_HEIGHT}" rx="4" fill="{fill}"{outline}/>'
        f'<text x="{x + width / 2:.0f}" y="{y + CELL_HEIGHT / 2 + 5:.0f}" font-size="13" fill="{ink}" '
        f'text-anchor="middle">{words}</text>'
    )


def _colour(passed: int, offered: int) -> str:
    if passed == offered:
        return GREEN
    return AMBER if passed >= 0.9 * offered else RED


def _legend(y: int) -> str:
    entries = [
        (GREEN, "all pass"),
        (AMBER, "9 of 10 pass"),
        (RED, "fewer"),
        (GREY, "not offered by the library"),
    ]
    parts = []
    x = MARGIN
    for colour, words in entries:
        parts.append(f'<rect x="{x}" y="{y - 11}" width="13" height="13" rx="3" fill="{colour}"/>')
        parts.append(f'<text x="{x + 19}" y="{y}" font-size="12" fill="{PALE}">{words}</text>')
        x += 36 + 7 * len(words)
    return "\n".join(parts)
