"""Asks for confirmation before pods are evicted; for many by typing their number."""

import asyncio
import os
import sys
import termios
from typing import TYPE_CHECKING, TextIO

from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan

MANY_PODS = 20
MANY_DEVICES = 0.10
"""The share of all devices above which a number has to be typed."""
_LINES = 24
"""The height of a terminal of unknown size."""


async def confirm(plan: "Plan", out: TextIO = sys.stdout, *, lines: int = 0) -> bool:
    """Ask whether to continue, below a plan of this many lines; fail without a terminal."""
    screen = _screen(out)
    if screen is None or not sys.stdin.isatty():
        what = "change placements" if plan.subject == "clusters" else "evict pods"
        raise CommandError(
            f"this may {what}, and there is no terminal to ask for confirmation\n"
            "  use --yes to skip the confirmation, or --dry-run to only show the plan",
            code=2,
        )
    if screen is not out or not fits_on(screen, lines):
        _show_briefly(plan, screen)
    typed = number_to_type(plan)
    if typed is None:
        return (await _answer("Continue? [y/N] ", screen)).lower() in ("y", "yes")
    count, thing = typed
    return await _answer(f"Type the number of {thing} ({count}) to continue: ", screen) == str(
        count
    )


def _screen(out: TextIO) -> TextIO | None:
    """Return a terminal for the question: the plan may be redirected to a file."""
    return next((stream for stream in (out, sys.stderr, sys.stdout) if stream.isatty()), None)


def fits_on(screen: TextIO, lines: int) -> bool:
    """Report whether this many lines fit on the terminal, with a question below them."""
    try:
        height = os.get_terminal_size(screen.fileno()).lines
    except OSError:
        height = 0
    return lines < (height or _LINES)


def _show_briefly(plan: "Plan", screen: TextIO) -> None:
    from sully.cli.change.plan_printer import summary

    screen.write(f"\n{summary(plan)}\n")


def number_to_type(plan: "Plan") -> tuple[int, str] | None:
    """Return which number of what has to be typed; None if yes is enough."""
    pods, devices = len(plan.caused), len(plan.devices)
    if pods > MANY_PODS:
        return pods, "pods to evict"
    placements = len(plan.placements)
    if placements > MANY_PODS:
        return placements, "placements that change"
    if devices > plan.total_devices * MANY_DEVICES:
        return (pods, "pods to evict") if pods else (devices, "devices that change")
    return None


async def _answer(question: str, out: TextIO) -> str:
    """Wait for a line from the keyboard, in the event loop, so that Ctrl-C works as elsewhere."""
    loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()
    # What was typed before the plan was shown is not an answer to it.
    termios.tcflush(keyboard, termios.TCIFLUSH)
    print(question, end="", file=out, flush=True)
    typed = asyncio.Event()
    loop.add_reader(keyboard, typed.set)
    try:
        await typed.wait()
    except asyncio.CancelledError:
        print("\nNothing changed.", file=out, flush=True)
        raise
    finally:
        loop.remove_reader(keyboard)
    # A terminal hands over whole lines, so this does not wait.
    line = sys.stdin.readline()
    if not line:
        print(file=out)
    return line.strip()
