"""Draws benchmarks as SVG: panels below each other, each with one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, EDGE, GAP = 720, 150, 60, 50


@dataclass(frozen=True, slots=True)
class Panel:
    """A value over something: both axes begin at 0."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    unit: str
    """What is on the x axis."""
    dots: bool = False
    """Mark each measurement, where there are few."""


def picture(title: str, panels: Sequence[Panel]) -> str:
    """Return one panel below the other."""
    height = EDGE + len(panels) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * EDGE} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{EDGE}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += _draw(panel, EDGE + number * (HEIGHT + GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw(panel: Panel, top: float) -> list[str]:
    most, end = max(panel.y, default=0.0) * 1.1 or 1.0, max(panel.x, default=0.0) or 1.0
    points = [
        (EDGE + x / end * WIDTH, top + HEIGHT - y / most * HEIGHT)
        for x, y in zip(panel.x, panel.y, strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    bottom = top + HEIGHT
    label = f"{most:.0f}" if most >= 10 else f"{most:.1f}"
    right = EDGE + WIDTH
    return [
        f'<text x="{EDGE}" y="{top - 6}">{escape(panel.name)}</text>',
        f'<path d="M{EDGE} {top} V{bottom} H{right}" fill="none" stroke="#888888"/>',
        f'<text x="{EDGE - 6}" y="{top + 10}" text-anchor="end">{label}</text>',
        f'<text x="{EDGE - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{right}" y="{bottom + 16}" text-anchor="end">{end:.0f} {panel.unit}</text>',
        f'<polyline points="{line}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>',
        *(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1f6feb"/>'
            for x, y in (points if panel.dots else ())
        ),
    ]
