"""Draws the screen that the README shows, from what the program prints. `make generate` runs it.

The command runs here, in a terminal that is only claimed, on a saved fleet: so the
picture is of what the program does now, and the same on every machine. `tests/docs` fails when it
is stale.
"""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Iterator
from html import escape
from io import StringIO
from pathlib import Path

from sully.cli.main import main as sully

ROOT = Path(__file__).resolve().parent.parent
PICTURE = Path("docs/pictures/plan.svg")
COMMAND = "sully plan device 'gpu.example.com/gpu-01/*' example.com/overheating:NoExecute"
FLEET = "examples/saved/fleet.yaml"
COLUMNS = 104
_WIDE, _HIGH, _EDGE = 7.83, 18, 14
"""How wide a character is in this font and size, how high a line, and how broad the frame."""
_COLOURS = {"1": "#ffffff", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
_PLAIN = "#c9d1d9"
_PAINTED = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


class Screen(StringIO):
    """What takes itself for a terminal."""

    def isatty(self) -> bool:
        """Report that it is a terminal."""
        return True


def main() -> int:
    """Draw the picture, if it is not there as it should be."""
    target, right = ROOT / PICTURE, picture()
    if not target.exists() or target.read_text() != right:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(right)
        print(f"written: {PICTURE}")
    return 0


def picture() -> str:
    """Return the picture as it should be."""
    lines = [f"\x1b[1m$ {COMMAND}\x1b[0m", *printed().splitlines()]
    width, height = COLUMNS * _WIDE + 2 * _EDGE, len(lines) * _HIGH + 2 * _EDGE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}"'
            ' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
            f"<title>{escape(COMMAND)}</title>",
            '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
            *(_drawn(line, at) for at, line in enumerate(lines) if line),
            "</svg>\n",
        ]
    )


def printed() -> str:
    """Return what the command prints in a terminal, colours included."""
    screen = Screen()
    env = {"COLUMNS": str(COLUMNS), "TERM": "xterm", "NO_COLOR": ""}
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        with contextlib.redirect_stdout(screen):
            sully([*shlex.split(COMMAND)[1:], "--snapshot", str(ROOT / FLEET)])
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
    return screen.getvalue()


def _drawn(line: str, at: int) -> str:
    """Draw a line; each part has its place, so that a font of another width tears nothing apart."""
    y = _EDGE + (at + 1) * _HIGH - 5
    parts = "".join(
        f'<tspan x="{_EDGE + column * _WIDE:.1f}" textLength="{len(text) * _WIDE:.1f}"'
        f' fill="{colour}">{escape(text, quote=False)}</tspan>'
        for column, text, colour in _parts(line)
    )
    return f'<text y="{y}" xml:space="preserve">{parts}</text>'


def _parts(line: str) -> Iterator[tuple[int, str, str]]:
    """Yield words with their column and colour; several spaces part them."""
    column = end = 0
    for found in [*_PAINTED.finditer(line), None]:
        plain = line[end : found.start() if found else None]
        for colour, text in (
            (_PLAIN, plain),
            (_COLOURS[found[1]], found[2]) if found else ("", ""),
        ):
            for word in re.finditer(r"\S+(?: \S+)*", text):
                yield column + word.start(), word[0], colour
            column += len(text)
        end = found.end() if found else end


if __name__ == "__main__":
    sys.exit(main())
