"""`sully evictions`: the rules that make pods leave, how far each is, and pauses."""

import argparse
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sully.cli.client.calling import Session, call
from sully.cli.client.flags import (
    NAMES,
    OUTPUTS,
    add_client_flags,
    add_headers_flag,
    add_snapshot_flag,
)
from sully.cli.client.labels import read_selector
from sully.cli.client.subjects import rule_named
from sully.cli.client.taking import is_known, take

if TYPE_CHECKING:
    from sully.client.informers.cache import Cache
    from sully.client.transport import Kind
    from sully.views.devices.exposures import Exposures
    from sully.views.evictions import Progress
    from sully.views.snapshot.snapshot import Gap

T = TypeVar("T")
_EPILOG = """\
examples:
  sully evictions                             every rule that evicts, and how far it has come
  sully evictions watch                       and then every step; --watch is the same
  sully evictions list 'firmware-*'           some rules
  sully evictions -o wide                     with who made the rule, and why
  sully evictions pause overheated --reason 'waiting for the vendor'
  sully evictions resume overheated 'firmware-*'
  sully evictions pause -l sully.dev/taint=firmware      all rules that one 'sully taint' made

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
        choices=("list", "watch", "pause", "resume"),
        metavar="list|watch|pause|resume",
        help="show the rules (default), or stop the eviction by some for now, or let it go on",
    )
    parser.add_argument(
        "rules", nargs="*", metavar="RULE", help="which rules; globs such as 'hot-*' stand for many"
    )
    parser.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="only rules with these labels, such as team=hardware",
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
    add_client_flags(
        parser,
        namespace="count only pods of this namespace (default: all)",
        outputs=(*OUTPUTS, NAMES),
    )
    add_headers_flag(parser)
    add_snapshot_flag(parser)


def run(options: argparse.Namespace) -> int:
    """Show the evictions, or pause or resume one."""
    if options.action in ("pause", "resume"):
        return call(options, "evictions", _set_pauses)
    options.watch = options.watch or options.action == "watch"
    return call(options, "evictions", _watch if options.watch else _show)


async def _show(session: Session) -> int:
    from sully.cli.client.documents import show_document
    from sully.cli.client.flags import TABLES
    from sully.cli.client.tables import Table
    from sully.cli.inspect.evictionrows import UNRECORDED, columns, document, row
    from sully.views.kinds import RULES

    found = await take(session, kinds_for(session), needed=(RULES,))
    progress = list(progress_in(session, found.exposures, found))
    output = session.options.output
    if output == NAMES:
        sys.stdout.writelines(f"{full_name(each)}\n" for each in progress)
        return 0
    if output not in TABLES:
        show_document({"evictions": [document(each) for each in progress]}, output)
        return 0
    if progress:
        wide = output == "wide"
        table = Table(columns(wide=wide), titled=not session.options.no_headers)
        table.show([row(each, found.taken, wide=wide) for each in progress])
        if not all(each.complete for each in progress):
            session.warn(UNRECORDED)
    else:
        session.warn(_nothing(session, found))
    _tell_of_others(session, found.exposures)
    return 0


def full_name(progress: "Progress") -> str:
    """Return what kubectl takes for the name of a rule."""
    return f"devicetaintrule.resource.k8s.io/{progress.rule.metadata.name}"


def _nothing(session: Session, loaded: "Loaded") -> str:
    """Say why nothing is shown: no rule is called so, or none makes pods leave."""
    from sully.cli.parsing import meant
    from sully.views.kinds import RULES

    known = [each.metadata.name for each in loaded.of(RULES).values()]
    for text in map(rule_named, session.options.rules):
        if not any(fnmatchcase(name, text) for name in known):
            return f'there is no DeviceTaintRule "{text}"{meant(text, known)}'
    asked = session.options.rules or session.options.selector
    return "no such rule makes pods leave" if asked else "no rule makes pods leave"


def _tell_of_others(session: Session, exposures: "Exposures") -> None:
    """Say that taints without a rule make pods leave, too."""
    from sully.cli.client.words import number
    from sully.views.evictions import others_due

    found = [each for each in others_due(exposures) if session.namespace in ("", each.namespace)]
    if found and not session.options.rules and not session.options.selector:
        session.warn(
            f"{number(len(found), 'pod')} must leave because of taints that drivers or patches set;"
            " 'sully devices --tainted' shows them"
        )


def kinds_for(session: Session) -> "tuple[Kind[Any], ...]":
    """Return the kinds that the answer is made from."""
    from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS
    from sully.views.snapshot.kinds import DEVICES

    kinds = (*DEVICES, TAINT_RECORDS)
    # There may be very many; only who asks about a namespace needs each of them.
    return (*kinds, EVICTION_RECORDS) if session.namespace else kinds


class Loaded(Protocol):
    """Objects by kind, and why some are missing: a snapshot, or caches that are followed."""

    def of(self, kind: "Kind[T]") -> "Cache[T]":
        """Return the objects of a kind."""

    def gap(self, kind: "Kind[Any]") -> "Gap | None":
        """Return why a kind is missing, or None if it is not."""


def progress_in(session: Session, exposures: "Exposures", loaded: Loaded) -> "Iterator[Progress]":
    """Yield how far rules have come, for the namespace that was asked for."""
    from sully.views.evictions import left_in, only_in, progress_of
    from sully.views.kinds import CLAIMS, EVICTION_RECORDS, PODS, RULES, TAINT_RECORDS

    now, gap = exposures.now(), loaded.gap(TAINT_RECORDS)
    # Who may not see them still learns from the status of rules how many left.
    kept = gap is None or gap.why != "not served"
    rules, records = loaded.of(RULES).values(), loaded.of(TAINT_RECORDS)
    left = (
        left_in(session.namespace, loaded.of(EVICTION_RECORDS).values())
        if session.namespace
        else {}
    )
    seen = all(is_known(loaded.gap(kind)) for kind in (PODS, CLAIMS))
    labels = read_selector(session.options.selector)
    for each in progress_of(rules, exposures, records, now, kept=kept, seen=seen):
        metadata = each.rule.metadata
        if not (_is_meant(session, metadata.name) and labels.matches(metadata.labels)):
            continue
        if not session.namespace:
            yield each
            continue
        here = only_in(session.namespace, each, left, now)
        if here.pending or here.evicted or here.leaving:
            yield here


def _is_meant(session: Session, rule: str) -> bool:
    names = session.options.rules
    return not names or any(fnmatchcase(rule, rule_named(each)) for each in names)


async def _watch(session: Session) -> int:
    from sully.cli.inspect.evictionwatch import watch

    return await watch(session)


async def _set_pauses(session: Session) -> int:
    from sully.cli.inspect.evictionpause import set_pauses

    return await set_pauses(session)
