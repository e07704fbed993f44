"""What `taint` and `untaint` print, and where.

With a table everything is for people and goes to the standard output. With `-o json`, `yaml` or
`name` the standard output has the objects alone, as kubectl prints them, so that they can be piped
into it; the plan and all other texts go to the standard error.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from sully.cli.change.plan import NO_PLACE
from sully.cli.client.calling import Session
from sully.cli.client.flags import NAMES, TABLES

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan

Obj = dict[str, Any]


def for_programs(session: Session) -> bool:
    """Say whether the standard output is for objects."""
    return session.options.output not in TABLES


def beside(session: Session) -> TextIO:
    """Return where texts go: not between the lines of a document for programs."""
    return sys.stderr if for_programs(session) else sys.stdout


def say(session: Session, text: str) -> None:
    """Tell what was done."""
    print(text, file=beside(session), flush=True)


def is_dry(session: Session) -> bool:
    """Say whether nothing is to be changed."""
    return bool(session.options.dry_run != "none")


async def go_on(session: Session, plan: "Plan", *, ask: bool) -> int | None:
    """Show a plan and ask, where that is due; return the exit code if that was all."""
    from sully.cli.change.asking import confirm
    from sully.cli.change.plantext import show_plan

    out = beside(session)
    lines = show_plan(plan, wide=session.options.output == "wide", stream=out)
    if is_dry(session):
        return NO_PLACE if plan.homeless else 0
    if ask and not session.options.yes and not await confirm(plan, out, lines=lines):
        say(session, "Nothing was changed.")
        return 1
    return None


def show_objects(session: Session, objects: Sequence[Obj]) -> None:
    """Print objects for programs, if that was asked for: one by itself, several as a List."""
    from sully.cli.client.documents import show_document

    if not for_programs(session):
        return
    output = session.options.output
    if output == NAMES:
        sys.stdout.writelines(f"{_full_name(each)}\n" for each in objects)
        sys.stdout.flush()
        return
    shown = [_without_managers(each) for each in objects]
    whole = {"apiVersion": "v1", "kind": "List", "items": shown}
    show_document(shown[0] if len(shown) == 1 else whole, output)


def _full_name(obj: Obj) -> str:
    """Return what kubectl takes for the name of an object."""
    group = obj["apiVersion"].rpartition("/")[0]
    return f"{obj['kind'].lower()}.{group}/{obj['metadata']['name']}"


def _without_managers(obj: Obj) -> Obj:
    """Return an object without who wrote which field, which kubectl does not print either."""
    metadata = {name: each for name, each in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
