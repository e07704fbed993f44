"""Asks for confirmation before pods are evicted; for many by typing their number."""

import asyncio
import os
import sys
import termios
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import msgspec

from sully.cli.command import CommandError
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan

MANY_PODS = 20
MANY_DEVICES = 0.10
"""The share of all devices above which a number has to be typed."""
NOTHING_CHANGED = "Nothing changed."
_LINES = 24
"""The height of a terminal of unknown size."""


class Question(msgspec.Struct, frozen=True):
    """What has to be confirmed."""

    action: str
    """What will happen: `Evict 2 pods and cordon 8 devices of node node-7`."""
    large: Sequence[str] = ()
    """Why the change is large."""
    risks: Sequence[str] = ()
    """What the plan does not point out."""


async def refusal(
    plan: "Plan", question: Question, out: TextIO, *, lines: int = 0, briefly: bool = False
) -> str:
    """Ask below a plan of this many lines; return why nothing changes, or nothing if confirmed.

    Fail without a terminal. With `briefly`, this plan was not printed.
    """
    from sully.cli.change.large_changes import large_change_text

    screen = _screen(out)
    if screen is None or not can_ask(out):
        raise CommandError(
            f"{_risk(plan, question)}, and there is no terminal to ask for confirmation\n"
            "  use --yes to skip the confirmation, or --dry-run to only show the plan",
            code=2,
        )
    if briefly or screen is not out or not fits_on(screen, lines):
        _show_briefly(plan, screen)
    if question.large and not briefly:
        screen.write(f"\n{large_change_text(question.large)}\n")
    typed = number_to_type(plan)
    if typed is None:
        return "" if await _is_yes(question.action, screen) else NOTHING_CHANGED
    count, thing = typed
    screen.write(f"{_wrapped(f'{question.action}?', screen)}\n")
    if await _answer(f"Type the number of {thing} ({count}) to continue: ", screen) == str(count):
        return ""
    return f"The answer was not {count}: nothing changed."


async def confirm_risk(action: str, risk: str, out: TextIO) -> bool:
    """Ask whether to do something in spite of a risk."""
    screen = _screen(out)
    if screen is None or not can_ask(out):
        raise CommandError(
            f"{risk}, and there is no terminal to ask for confirmation\n"
            "  use --yes to skip the confirmation, or --dry-run to only show what would be done",
            code=2,
        )
    return await _is_yes(action, screen)


async def _is_yes(action: str, screen: TextIO) -> bool:
    question = _wrapped(f"{action}? [y/N]", screen)
    return (await _answer(f"{question} ", screen)).lower() in ("y", "yes")


def _wrapped(text: str, screen: TextIO) -> str:
    from sully.cli.output.tables import broken, table_layout_of

    width = table_layout_of(screen).width
    # The answer is typed on the last line.
    return text if width is None else "\n".join(broken(text, width - len(" yes")))


def _risk(plan: "Plan", question: Question) -> str:
    if plan.subject == "clusters":
        return "this may change placements"
    if plan.caused:
        return f"this evicts {number_of(len(plan.caused), 'pod')}"
    if question.risks:
        return question.risks[0]
    return f"this changes {question.large[0]}" if question.large else "this may evict pods"


def can_ask(out: TextIO) -> bool:
    """Report whether there is a terminal to ask for confirmation."""
    return _screen(out) is not None and sys.stdin.isatty()


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
    from sully.cli.change.plan.printer import broken_budgets, headline, summary

    loops = (f"{headline(loop)}\n" for loop in plan.eviction_loops[:1])
    budgets = (f"{line}\n" for line in broken_budgets(plan))
    screen.write(f"\n{''.join(loops)}{summary(plan)}\n{''.join(budgets)}")


def number_to_type(plan: "Plan") -> tuple[int, str] | None:
    """Return which number of what has to be typed; None if yes is enough."""
    pods, devices = len(plan.caused), len(plan.devices)
    if plan.eviction_loops:
        looping = sum(loop.pods for loop in plan.eviction_loops)
        return looping, "pods to evict again and again"
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
        print(f"\n{NOTHING_CHANGED}", file=out, flush=True)
        raise
    finally:
        loop.remove_reader(keyboard)
    # A terminal delivers whole lines, so this does not wait.
    line = sys.stdin.readline()
    if not line:
        print(file=out)
    return line.strip()
