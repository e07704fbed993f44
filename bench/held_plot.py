"""Draws how a held load went: response times, delay of watches, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

Row = Mapping[str, float]
WIDTH, HEIGHT, EDGE, GAP = 720, 150, 60, 50
_PANELS = (
    ("response time, p99 (ms)", "p99", 1000.0),
    ("change to the last watcher, p99 (ms)", "watch_p99", 1000.0),
    ("memory of the server (MiB)", "memory", 1.0),
)


def picture(title: str, samples: Sequence[Row]) -> str:
    """Return one panel below the other, with the minutes on the x axis."""
    height = EDGE + len(_PANELS) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * EDGE} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{EDGE}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for number, (name, key, scale) in enumerate(_PANELS):
        values = [sample[key] * scale for sample in samples]
        minutes = [sample["seconds"] / 60 for sample in samples]
        parts += _panel(name, EDGE + number * (HEIGHT + GAP), minutes, values)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(name: str, top: float, minutes: Sequence[float], values: Sequence[float]) -> list[str]:
    most, end = max(values, default=0.0) * 1.1 or 1.0, max(minutes, default=0.0) or 1.0
    points = " ".join(
        f"{EDGE + minute / end * WIDTH:.1f},{top + HEIGHT - value / most * HEIGHT:.1f}"
        for minute, value in zip(minutes, values, strict=True)
    )
    bottom = top + HEIGHT
    return [
        f'<text x="{EDGE}" y="{top - 6}">{escape(name)}</text>',
        f'<path d="M{EDGE} {top} V{bottom} H{EDGE + WIDTH}" fill="none" stroke="#888888"/>',
        f'<text x="{EDGE - 6}" y="{top + 10}" text-anchor="end">{most:.0f}</text>',
        f'<text x="{EDGE - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{EDGE + WIDTH}" y="{bottom + 16}" text-anchor="end">{end:.0f} min</text>',
        f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>',
    ]
