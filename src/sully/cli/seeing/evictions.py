"""`sully evictions`: the rules that make pods leave, how far each is, and pauses."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.flags import add_client_flags, add_snapshot_flag
from sully.cli.client.taking import take

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.client.collection import Copy
    from sully.client.transport import Kind
    from sully.views.evictions import Progress
    from sully.views.exposures import Exposures
    from sully.views.snapshot import Gap

T = TypeVar("T")
_EPILOG = """\
examples:
  sully evictions                             every rule that evicts, and how far it has come
  sully evictions --watch                     and then every step
  sully evictions -o wide                     with who made the rule, and why
  sully evictions pause overheated --reason 'waiting for the vendor'
  sully evictions resume overheated 'firmware-*'

PENDING pods still have to leave, EVICTED ones were made to leave because of the rule; while the
last of them shut down, the STATE is leaving. FINISHES is when the last one will have left: by
tolerations and the pace of the rule, then by the grace of pods. A paused rule evicts nobody, but
keeps new pods off its devices. 2+ are at least two: where Kubernetes' own controller evicts, it
counts only since it was started, and nobody records.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Show evictions from tainted devices, rule by rule; pause and resume them."
    parser.epilog = _EPILOG
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "pause", "resume"),
        metavar="pause|resume",
        help="stop the eviction by a rule for now, or let it go on",
    )
    parser.add_argument(
        "rules", nargs="*", metavar="RULE", help="which rules; globs such as 'hot-*' stand for many"
    )
    parser.add_argument(
        "--reason", default="true", metavar="TEXT", help="why it is paused, for others to read"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="pause although the server is not Sully's own: right where 'sully controllers' evict",
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="go on, and print rules that change"
    )
    add_client_flags(parser, namespace="count only pods of this namespace (default: all)")
    add_snapshot_flag(parser)


def run(options: argparse.Namespace) -> int:
    """Show the evictions, or pause or resume one."""
    if options.action == "list":
        if options.rules:
            print("sully evictions: rules are named behind pause or resume", file=sys.stderr)
            return 2
        return call(options, "evictions", _watch if options.watch else _show)
    return call(options, "evictions", _set_pause)


async def _show(session: Session) -> int:
    from sully.cli.client.documents import show_document
    from sully.cli.client.flags import TABLES
    from sully.cli.client.tables import Table
    from sully.cli.seeing.evictionrows import UNRECORDED, columns, document, row
    from sully.views.kinds import RULES

    found = await take(session, kinds_for(session), needed=(RULES,))
    progress = list(progress_in(session, found.exposures, found))
    output = session.options.output
    if output not in TABLES:
        show_document({"evictions": [document(each) for each in progress]}, output)
    elif progress:
        wide = output == "wide"
        Table(columns(wide=wide)).show([row(each, found.taken, wide=wide) for each in progress])
        if not all(each.complete for each in progress):
            session.warn(UNRECORDED)
    else:
        session.warn("no rule makes pods leave")
    return 0


def kinds_for(session: Session) -> "tuple[Kind[Any], ...]":
    """Return the kinds that the answer is made from."""
    from sully.views.snapshotkinds import DEVICES, EVICTION_RECORDS, TAINT_RECORDS

    kinds = (*DEVICES, TAINT_RECORDS)
    # There may be very many; only who asks about a namespace needs each of them.
    return (*kinds, EVICTION_RECORDS) if session.namespace else kinds


class Loaded(Protocol):
    """Objects by kind, and why some are missing: a snapshot, or caches that are followed."""

    def of(self, kind: "Kind[T]") -> "Copy[T]":
        """Return the objects of a kind."""

    def gap(self, kind: "Kind[Any]") -> "Gap | None":
        """Return why a kind is missing, or None if it is not."""


def progress_in(session: Session, exposures: "Exposures", loaded: Loaded) -> "Iterator[Progress]":
    """Yield how far rules have come, for the namespace that was asked for."""
    from sully.views.evictions import only_in, progress_of
    from sully.views.kinds import RULES
    from sully.views.snapshotkinds import EVICTION_RECORDS, TAINT_RECORDS

    now, gap = exposures.now(), loaded.gap(TAINT_RECORDS)
    # Who may not see them still learns from the status of rules how many left.
    kept = gap is None or gap.why != "not served"
    rules, records = loaded.of(RULES).values(), loaded.of(TAINT_RECORDS)
    for each in progress_of(rules, exposures, records, now, kept=kept):
        if not session.namespace:
            yield each
            continue
        here = only_in(session.namespace, each, loaded.of(EVICTION_RECORDS).values(), now)
        if here.pending or here.evicted or here.leaving:
            yield here


async def _watch(session: Session) -> int:
    from sully.cli.seeing.evictionwatch import watch

    return await watch(session)


async def _set_pause(session: Session) -> int:
    options = session.options
    if not options.rules:
        raise CommandError(f"which rule? write: sully evictions {options.action} RULE", code=2)
    found = await _meant_rules(session)
    if options.action == "pause" and not options.force:
        await _check_evictor(session, found[0].metadata.name)
    for rule in found:
        await _set_one(session, rule)
    return 0


async def _meant_rules(session: Session) -> "list[DeviceTaintRule]":
    """Return the rules that were named, all of them before any is changed."""
    from fnmatch import fnmatchcase

    from sully.cli.parsing import meant
    from sully.views.kinds import RULES
    from sully.views.loading import list_all

    known = {each.metadata.name: each for each in await list_all(session.transport, RULES)}
    found: dict[str, DeviceTaintRule] = {}
    for text in session.options.rules:
        matching = {name: known[name] for name in sorted(known) if fnmatchcase(name, text)}
        if not matching:
            raise CommandError(
                f'there is no DeviceTaintRule "{text}"{meant(text, known)}\n'
                "  'sully evictions' lists those at work"
            )
        found |= matching
    return list(found.values())


async def _set_one(session: Session, rule: "DeviceTaintRule") -> None:
    from sully.api.resource.annotations import PAUSED, pause_reason
    from sully.client.transport import Key
    from sully.views.kinds import RULES

    options, name = session.options, rule.metadata.name
    pause = options.action == "pause"
    now = pause_reason(rule.metadata.annotations)
    wanted = options.reason if pause else None
    if now != wanted:
        change = {"metadata": {"annotations": {PAUSED: wanted}}}
        await session.transport.patch(RULES, Key("", name), change)
    text = {"pause": "paused", "resume": "resumed"}[options.action]
    print(f"devicetaintrule {name} {text}" + (" (it was already)" if now == wanted else ""))
    if pause and now != wanted:
        print(f"  'sully evictions resume {name}' lets it go on")


async def _check_evictor(session: Session, name: str) -> None:
    """Refuse what would have no effect: only our controller knows of pauses."""
    from sully.cli.client.evictor import sully_evicts_at

    if not await sully_evicts_at(session):
        raise CommandError(
            f"devicetaintrule {name} cannot be paused: on {session.server} it is Kubernetes'"
            " controller that evicts, and it would go on\n"
            f"  delete the rule, or weaken it: kubectl patch devicetaintrule {name} --type=merge"
            """ -p '{"spec":{"taint":{"effect":"NoSchedule"}}}'\n"""
            "  if 'sully controllers' evict there, say --force"
        )
