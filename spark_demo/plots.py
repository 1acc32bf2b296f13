"""Small plots as SVG, drawn by hand: lines over time and horizontal bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 240, 64, 28, 12
_COLOURS = ("#2563eb", "#db2777", "#16a34a", "#d97706", "#7c3aed", "#0891b2")


def lines(series: Mapping[str, Points], unit: str) -> str:
    """A line for each series, over seconds."""
    points = [point for each in series.values() for point in each]
    last_x = _round_up(max((x for x, _ in points), default=1))
    last_y = _round_up(max((y for _, y in points), default=1))
    parts = [_grid(last_x, last_y, unit)]
    for number, (name, each) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{_x(x, last_x):.1f},{_y(y, last_y):.1f}" for x, y in each)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts.append(
            f'<text x="{_LEFT + 8 + 105 * number}" y="{_TOP + 8}" fill="{colour}">{escape(name)}</text>'
        )
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


def _grid(last_x: float, last_y: float, unit: str) -> str:
    parts = []
    for step in range(5):
        value, y = last_y * step / 4, _y(last_y * step / 4, last_y)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y}" y2="{y}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:,.0f}</text>')
        x = _x(last_x * step / 4, last_x)
        parts.append(
            f'<text x="{x}" y="{_HEIGHT - 8}" text-anchor="middle">{last_x * step / 4:,.0f} s</text>'
        )
    parts.append(
        f'<text x="{_WIDTH - 10}" y="{_TOP + 8}" text-anchor="end" fill="#6b7280">{escape(unit)}</text>'
    )
    return "".join(parts)


def _round_up(value: float) -> float:
    """The next figure whose quarters are easy to read."""
    size = 10.0 ** math.floor(math.log10(max(value, 1)))
    return next(step * size for step in (1, 2, 4, 6, 8, 10, 20) if step * size >= value)


def _x(x: float, last: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - 24) * x / last


def _y(y: float, last: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP - 14) * y / last


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" font-family="system-ui, sans-serif" font-size="12">'
        f"{''.join(parts)}</svg>"
    )
