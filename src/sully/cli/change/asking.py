"""Asks before pods are made to leave; much has to be confirmed by typing a number."""

import asyncio
import os
import sys
import termios
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.calling import CommandError

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan

MANY_PODS = 20
MANY_DEVICES = 0.10
"""The part of all devices from which on a number has to be typed."""
_LINES = 24
"""How many lines a terminal has that does not say it."""


async def confirm(plan: "Plan", out: TextIO = sys.stdout, *, lines: int = 0) -> bool:
    """Ask whether to go on, below a plan of so many lines; refuse where nobody can be asked."""
    screen = _screen(out)
    if screen is None or not sys.stdin.isatty():
        what = "placements move" if plan.about == "clusters" else "pods leave"
        raise CommandError(
            f"refused: this may make {what}, and there is nobody to ask\n"
            "  --yes goes on without a question, --dry-run only shows the plan",
            code=2,
        )
    if screen is not out or not in_sight(lines, screen):
        _show_briefly(plan, screen)
    wanted = number_to_type(plan)
    if wanted is None:
        return (await _answer("Go on? [y/N] ", screen)).lower() in ("y", "yes")
    count, thing = wanted
    return await _answer(f"Type the number of {thing} ({count}) to go on: ", screen) == str(count)


def _screen(out: TextIO) -> TextIO | None:
    """Return where whoever types sees the question: the plan may go into a file."""
    return next((each for each in (out, sys.stderr, sys.stdout) if each.isatty()), None)


def in_sight(lines: int, screen: TextIO) -> bool:
    """Say whether all of so many lines can still be seen when a question stands below them."""
    try:
        height = os.get_terminal_size(screen.fileno()).lines
    except OSError:
        height = 0
    return lines < (height or _LINES)


def _show_briefly(plan: "Plan", screen: TextIO) -> None:
    from sully.cli.change.plantext import summary

    screen.writelines(f"{line}\n" for line in ("", *summary(plan)))


def number_to_type(plan: "Plan") -> tuple[int, str] | None:
    """Return what has to be typed, and of what it is the number; None: a yes is enough."""
    pods, devices = len(plan.caused), len(plan.devices)
    if pods > MANY_PODS:
        return pods, "pods that leave"
    placements = len(plan.placements)
    if placements > MANY_PODS:
        return placements, "placements that change"
    if devices > plan.devices_known * MANY_DEVICES:
        return (pods, "pods that leave") if pods else (devices, "devices that change")
    return None


async def _answer(question: str, out: TextIO) -> str:
    """Wait for a line from the keyboard, in the loop, so that Ctrl-C is heard as elsewhere."""
    loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()
    # What was typed before the plan was on the screen is no answer to it.
    termios.tcflush(keyboard, termios.TCIFLUSH)
    print(question, end="", file=out, flush=True)
    typed = asyncio.Event()
    loop.add_reader(keyboard, typed.set)
    try:
        await typed.wait()
    except asyncio.CancelledError:
        print("\nNothing was changed.", file=out, flush=True)
        raise
    finally:
        loop.remove_reader(keyboard)
    # A terminal hands over whole lines, so this does not wait.
    line = sys.stdin.readline()
    if not line:
        print(file=out)
    return line.strip()
