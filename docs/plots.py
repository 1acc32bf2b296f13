"""Small plots as SVG, drawn by hand: lines over time, curves over sizes, bars, and ratios with their spread.

`lines` and `bars` are for a page that holds the SVG itself; `standalone` makes a file of any of them, with a white
ground, so that it can be read on a page of any colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 240, 64, 28, 12
_WIDE = 760  # for rows with long names
_TITLE = 28  # the height of a title
_COLOURS = ("#2563eb", "#db2777", "#16a34a", "#d97706", "#7c3aed", "#0891b2")
_GREY, _PALE = "#6b7280", "#e5e7eb"
_GOOD, _BAD, _NEUTRAL = "#16a34a", "#dc2626", "#2563eb"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A row of a plot of ratios: where it lies, how far it spreads, where it should lie and whether it does."""

    name: str
    low: float
    middle: float
    high: float
    aim: float | None = None
    is_met: bool | None = None


def lines(series: Mapping[str, Points], unit: str) -> str:
    """A line for each series, over seconds."""
    points = [point for each in series.values() for point in each]
    last_x = _round_up(max((x for x, _ in points), default=1))
    last_y = _round_up(max((y for _, y in points), default=1))
    labels = [(_x(last_x * step / 4, last_x), f"{_shown(last_x * step / 4)} s") for step in range(5)]
    parts = [_grid(labels, last_y, unit), _legend(series)]
    for number, each in enumerate(series.values()):
        parts.append(_line(number, [(_x(x, last_x), _y(y, last_y)) for x, y in each]))
    return _svg(_HEIGHT, parts)


def curves(series: Mapping[str, Sequence[float]], steps: Sequence[str], unit: str) -> str:
    """A line for each series over named steps, which stand at equal distances."""
    last_y = _round_up(max((y for each in series.values() for y in each), default=1))
    places = [_x(number, max(len(steps) - 1, 1)) for number in range(len(steps))]
    parts = [_grid(list(zip(places, steps, strict=True)), last_y, unit), _legend(series)]
    for number, each in enumerate(series.values()):
        points = [(x, _y(y, last_y)) for x, y in zip(places, each, strict=False)]
        parts.append(_line(number, points))
        colour = _COLOURS[number % len(_COLOURS)]
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return _svg(_HEIGHT, parts)


def bars(rows: Sequence[tuple[str, float]]) -> str:
    """A bar for each row, with its figure."""
    widest = max((value for _, value in rows), default=1) or 1
    parts = []
    for number, (name, value) in enumerate(rows):
        y = 8 + 22 * number
        width = (_WIDTH - 250) * value / widest
        parts.append(f'<text x="150" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="158" y="{y}" width="{width:.1f}" height="16" rx="2" fill="{_COLOURS[0]}"/>')
        parts.append(f'<text x="{166 + width:.1f}" y="{y + 13}">{value:,.0f}</text>')
    return _svg(16 + 22 * len(rows), parts)


def grouped_bars(rows: Sequence[tuple[str, Mapping[str, float]]], unit: str) -> str:
    """For each row a bar for each of its series, on a scale on which equal factors are equal lengths."""
    values = [value for _, each in rows for value in each.values() if value > 0]
    low = 10.0 ** math.floor(math.log10(min(values, default=1)))
    high = max(values, default=10) * 1.05
    left, right, top = 250, _WIDTH - 70, 24
    names = list(dict.fromkeys(name for _, each in rows for name in each))
    parts = [
        f'<text x="{left + 110 * number}" y="14" fill="{_COLOURS[number]}">{escape(name)}</text>'
        for number, name in enumerate(names)
    ]
    y = top
    for title, each in rows:
        middle = y + 7 * len(each)
        parts.append(f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(title)}</text>')
        for name, value in each.items():
            width = (right - left) * max(0.0, math.log(max(value, low) / low) / math.log(high / low))
            colour = _COLOURS[names.index(name)]
            parts.append(
                f'<rect x="{left}" y="{y}" width="{width:.1f}" height="12" rx="2" fill="{colour}"/>'
                f'<text x="{left + width + 6:.1f}" y="{y + 10}" font-size="11">{value:,.2f} {escape(unit)}</text>'
            )
            y += 14
        y += 8
    return _svg(y + 4, parts)


def ratios(rows: Sequence[Ratio], caption: str) -> str:
    """A mark for each ratio with a line as long as its spread, beside 1, and a tick where it should be."""
    numbers = [number for row in rows for number in (row.low, row.high, row.aim or 1.0) if number > 0]
    low = min([*numbers, 0.5]) / 1.15
    high = max([*numbers, 2.0]) * 1.15
    left, right, top = 350, _WIDE - 62, 28

    def x(ratio: float) -> float:
        bounded = min(max(ratio, low), high)
        return left + (right - left) * math.log(bounded / low) / math.log(high / low)

    bottom = top + 20 * len(rows)
    parts = [f'<text x="8" y="12" fill="{_GREY}">{escape(caption)}</text>']
    for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20):
        if low <= tick <= high:
            colour, width = (_GREY, 1.5) if tick == 1 else (_PALE, 1)
            parts.append(
                f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top - 6}" y2="{bottom}" stroke="{colour}" '
                f'stroke-width="{width}"/><text x="{x(tick):.1f}" y="{bottom + 14}" text-anchor="middle" '
                f'fill="{_GREY}">{tick:g} ×</text>'
            )
    for number, row in enumerate(rows):
        y = top + 20 * number + 8
        colour = _NEUTRAL if row.is_met is None else _GOOD if row.is_met else _BAD
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>')
        parts.append(
            f'<line x1="{x(row.low):.1f}" x2="{x(row.high):.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
            f'stroke-width="3" stroke-opacity="0.4"/>'
            f'<circle cx="{x(row.middle):.1f}" cy="{y}" r="4.5" fill="{colour}"/>'
            f'<text x="{_WIDE - 6}" y="{y + 4}" text-anchor="end" fill="{colour}">{row.middle:.2f} ×</text>'
        )
        if row.aim is not None:
            at = x(row.aim)
            parts.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y - 7}" y2="{y + 7}" stroke="#111827" stroke-width="2"/>'
            )
    return _svg(bottom + 22, parts, _WIDE)


def standalone(svg: str, title: str = "") -> str:
    """The plot as a file of its own, with its title above it."""
    opening, _, rest = svg.partition(">")
    box = opening.split('"')[1]
    width, height = map(int, box.split()[2:])
    above = _TITLE if title else 0
    opening = opening.replace(box, f"0 {-above} {width} {height + above}")
    ground = f'<rect y="{-above}" width="{width}" height="{height + above}" fill="#ffffff"/>'
    if title:
        ground += f'<text x="8" y="-10" font-size="14" font-weight="600">{escape(title)}</text>'
    return f'{opening} xmlns="http://www.w3.org/2000/svg" width="{width}">{ground}{rest}\n'


def _line(number: int, points: Points) -> str:
    colour = _COLOURS[number % len(_COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def _legend(names: Iterable[str]) -> str:
    """The names of lines, each in its colour, one after the other above the plot."""
    parts, x = [], float(_LEFT)
    for number, name in enumerate(names):
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(f'<text x="{x:.1f}" y="{_TOP}" fill="{colour}">{escape(name)}</text>')
        x += 6.4 * len(name) + 16  # about as wide as letters of that size are
    return "".join(parts)


def _grid(labels: Sequence[tuple[float, str]], last_y: float, unit: str) -> str:
    parts = []
    for step in range(5):
        value, y = last_y * step / 4, _y(last_y * step / 4, last_y)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y}" y2="{y}" stroke="{_PALE}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{_shown(value)}</text>')
    for x, label in labels:
        parts.append(f'<text x="{x}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(label)}</text>')
    parts.append(f'<text x="{_WIDTH - 10}" y="{_TOP}" text-anchor="end" fill="{_GREY}">{escape(unit)}</text>')
    return "".join(parts)


def _shown(value: float) -> str:
    """With as many digits behind the point as there are, at most two."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _round_up(value: float) -> float:
    """The next figure whose quarters are easy to read."""
    size = 10.0 ** math.floor(math.log10(max(value, 0.01)))
    return next(step * size for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 6, 8, 10, 20) if step * size >= value)


def _x(x: float, last: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - 24) * x / last


def _y(y: float, last: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP - 14) * y / last


def _svg(height: int, parts: Sequence[str], width: int = _WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" font-family="system-ui, sans-serif" font-size="12">'
        f"{''.join(parts)}</svg>"
    )
