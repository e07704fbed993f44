"""What `taint` and `untaint` print, and where.

By default everything is written to standard output. With `-o json`, `yaml` or `name` only the
objects are, as kubectl prints them; the plan and all other texts are written to standard error.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from sully.cli.change.plan.results import EXIT_EVICTION_LOOP, exit_code
from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.formatting import object_name

if TYPE_CHECKING:
    from sully.cli.change.confirm import Question
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Remove

Obj = dict[str, Any]


def for_programs(session: Session) -> bool:
    """Report whether standard output is for objects."""
    return session.options.output not in TABLES


def text_stream(session: Session) -> TextIO:
    if session.stream is not None:
        return session.stream
    return sys.stderr if for_programs(session) else sys.stdout


def report(session: Session, text: str) -> None:
    print(text, file=text_stream(session), flush=True)


def is_dry_run(session: Session) -> bool:
    return bool(session.options.dry_run != "none")


async def confirmed(
    session: Session, plan: "Plan", question: "Question", *, ask: bool
) -> int | None:
    """Show a plan and ask for confirmation if needed; return the exit code if that was all."""
    from sully.cli.change.confirm import refusal
    from sully.cli.change.plan.printer import show_plan

    out = text_stream(session)
    # What is written without a question is printed when it is written.
    written = ask and session.options.yes and not is_dry_run(session)
    wide = session.options.output == "wide"
    lines = show_plan(plan, wide=wide, stream=out, objects=not written)
    for risk in question.risks:
        session.warn(f"warning: {risk}")
    if is_dry_run(session):
        return exit_code(plan)
    if ask and plan.eviction_loops and not getattr(session.options, "force", False):
        refuse_loop(session)
    if not ask or session.options.yes:
        return None
    lines += len(question.risks)
    if refused := await refusal(plan, question, out, lines=lines):
        report(session, refused)
        return 1
    return None


def refuse_loop(session: Session) -> None:
    """Refuse to start an eviction loop without a terminal to confirm it."""
    from sully.cli.change.confirm import can_ask

    if not session.options.yes and can_ask(text_stream(session)):
        return
    raise CommandError(
        "pods would be evicted again and again; nothing changed\n"
        "  see above what would help, or use --force to continue anyway",
        code=EXIT_EVICTION_LOOP,
    )


async def deleted_objects(session: Session, deletions: "Sequence[Remove]") -> list[Obj]:
    """Return objects that are about to be deleted, if they are to be printed."""
    if not for_programs(session):
        return []
    get = session.transport.get
    return [await get(deletion.kind.read_as(dict), deletion.key) for deletion in deletions]


def print_objects(session: Session, objects: Sequence[Obj]) -> None:
    """Print objects with -o json, yaml or name: one by itself, several as a List."""
    from sully.cli.output.printers import print_document

    if not for_programs(session):
        return
    output = session.options.output
    if output == NAMES:
        sys.stdout.writelines(f"{object_name(obj)}\n" for obj in objects)
        sys.stdout.flush()
        return
    shown = [_without_managers(session.transport.as_served(obj)) for obj in objects]
    items = {"apiVersion": "v1", "kind": "List", "items": shown}
    print_document(shown[0] if len(shown) == 1 else items, output)


def _without_managers(obj: Obj) -> Obj:
    """Return an object without managedFields, which kubectl does not print either."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
