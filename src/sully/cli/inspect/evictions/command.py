"""`sully evictions`: the rules that evict pods, their progress, and pauses."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from sully.cli.client.options import (
    NAMES,
    OUTPUTS,
    TABLES,
    client_options,
    no_headers_option,
    selecting_option,
    snapshot_option,
    watch_option,
)
from sully.cli.client.session import Session, call
from sully.cli.client.snapshots import is_known, take_snapshot
from sully.cli.command import ActionOrName, Options, action_and_names, command
from sully.cli.names import SUBJECTS, completer
from sully.cli.output.formatting import rule_name
from sully.cli.output.text import did_you_mean
from sully.cli.selection.globs import any_glob_matches, glob_matches
from sully.cli.selection.selectors import read_selector, rule_named

if TYPE_CHECKING:
    from sully.client.informers.cache import Cache
    from sully.client.transport import Kind
    from sully.domain.capabilities.control_plane import ControlPlane
    from sully.views.devices.exposures import Exposures
    from sully.views.eviction_loops import LoopWithRules
    from sully.views.evictions import EvictionProgress
    from sully.views.snapshot.snapshot import Gap, Snapshot

T = TypeVar("T")
_ACTIONS = ("list", "watch", "pause", "resume")
_HELP = """\
List the rules that evict pods from tainted devices and their progress, or pause and resume
evictions.

A paused rule evicts no pods, but still prevents scheduling on its devices. RULE is a name or glob.

PENDING pods have yet to be evicted. EVICTED pods were evicted because of the rule; while the last
of them terminate, the STATE is terminating. FINISHES is when the last pod will have terminated,
given tolerations, the rate of the rule, and grace periods. It is later if the controllers have a
lower limit, --max-evictions-per-minute, which clients cannot see. 2+ means at least two, and
unknown that no number is known: the eviction controller of Kubernetes only counts since it was
started, and reports up to ten seconds late.
"""
_EXAMPLES = """\
# List all rules that evict pods
sully evictions

# List them, then watch for changes
sully evictions watch

# List some rules, with who created them and why
sully evictions 'firmware-*' -o wide

# Pause the evictions of a rule, and resume those of several
sully evictions pause overheated --reason 'waiting for the vendor'
sully evictions resume overheated 'firmware-*'

# Pause all rules that one 'sully taint' created
sully evictions pause -l sully.dev/taint=firmware
"""


@command(
    "evictions",
    usage="[RULE] [flags]\nlist|watch [RULE...] [flags]\npause|resume RULE... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("action", default="list", type=ActionOrName(_ACTIONS), metavar="[ACTION]")
@click.argument("rules", nargs=-1, metavar="[RULE]...", shell_complete=completer(SUBJECTS["rule"]))
@selecting_option(
    "--selector",
    "-l",
    default="",
    metavar="LABELS",
    help="Selector (label query) to filter rules on.",
)
@click.option(
    "--reason",
    default=None,
    metavar="TEXT",
    help="Why evictions are paused; of a rule that is paused already, the reason stays without it.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Pause even if the server does not seem to run Sully's eviction controller, or if a rule"
    " evicts no pod yet.",
)
@watch_option
@client_options(
    namespace="If present, count only pods in this namespace.", outputs=(*OUTPUTS, NAMES)
)
@no_headers_option
@snapshot_option
def evictions(options: Options) -> int:
    options.action, options.rules = action_and_names(options.action, options.rules, _ACTIONS)
    if options.action in ("pause", "resume"):
        return call(options, "evictions", _set_pauses)
    options.watch = options.watch or options.action == "watch"
    return call(options, "evictions", _watch if options.watch else _show)


async def _show(session: Session) -> int:
    from sully.cli.client.inaction import warn_of_inactions
    from sully.cli.inspect.evictions.printer import (
        UNRECORDED,
        columns,
        document,
        loop_document,
        loop_text,
        row,
        with_loops,
    )
    from sully.cli.output.printers import print_document
    from sully.cli.output.tables import Table
    from sully.cli.selection.files import files_hint
    from sully.views.inactions import EVICTING, inactions_in
    from sully.views.kinds import RULES

    snapshot = await take_snapshot(session, kinds_for(session), needed=(RULES,))
    plane = snapshot.control_plane
    progress = list(progress_in(session, snapshot.exposures, snapshot, plane))
    loops = await _eviction_loops(session, snapshot) if progress else []
    progress = [with_loops(x, loops) for x in progress]
    output, not_found = session.options.output, list(_not_found(session, snapshot))
    if output == NAMES:
        sys.stdout.writelines(f"{rule_name(x.rule.metadata.name)}\n" for x in progress)
    elif output not in TABLES:
        documents = {"evictionLoops": [loop_document(x) for x in loops]} if loops else {}
        titled = not session.options.no_headers
        documents["evictions"] = [document(x) for x in progress]
        print_document(documents, output, ("evictions",), titled=titled)
    else:
        for loop in loops:
            session.warn(f"warning: {loop_text(loop, snapshot.taken)}")
        if progress:
            wide = output == "wide"
            table = Table(columns(wide=wide), titled=not session.options.no_headers)
            table.show([row(x, snapshot.taken, wide=wide) for x in progress])
            if not all(x.complete or x.state == "inactive" for x in progress):
                session.warn(UNRECORDED)
        elif not not_found:
            session.warn(_no_evictions(session, snapshot, plane))
        _warn_of_others(session, snapshot.exposures)
    warn_of_inactions(session, inactions_in(snapshot, plane, EVICTING))
    for text in not_found:
        session.warn(f"error: {text}")
    if not_found:
        session.warn(f"  list them with 'sully evictions'{files_hint(session.options.rules)}")
    return 1 if not_found else 0


def _no_evictions(session: Session, snapshot: "Snapshot", plane: "ControlPlane") -> str:
    """Return that no rule evicts pods; of a namespace, also how many do so elsewhere."""
    from sully.machinery.formats.plurals import number_of

    filtered = session.options.rules or session.options.selector
    text = f"No {'matching ' if filtered else ''}rule evicts pods"
    if not session.namespace:
        return f"{text}."
    others = _selected_progress(session, snapshot.exposures, snapshot, plane)
    count = sum(bool(x.pending or x.evicted or x.terminating) for x in others)
    evict = "evicts" if count == 1 else "evict"
    rest = f": {number_of(count, 'rule')} {evict} pods in other namespaces" if count else ""
    return f"{text} in namespace {session.namespace}{rest}."


async def _eviction_loops(session: Session, snapshot: "Snapshot") -> "list[LoopWithRules]":
    """Return the owners whose pods are evicted again and again, with the rules that do it."""
    from sully.views.eviction_loops import loops_with_rules
    from sully.views.snapshot.loading import with_eviction_events

    if not session.options.snapshot:
        snapshot = await with_eviction_events(session.transport, snapshot, session.namespace)
    return loops_with_rules(snapshot)


def _not_found(session: Session, loaded: "Loaded") -> Iterator[str]:
    """Yield the names that no rule has."""
    from sully.views.kinds import RULES

    known = [rule.metadata.name for rule in loaded.of(RULES).values()]
    for text in map(rule_named, session.options.rules):
        if not any(glob_matches(text, name) for name in known):
            yield f'devicetaintrule "{text}" not found{did_you_mean(text, known)}'


def _warn_of_others(session: Session, exposures: "Exposures") -> None:
    """Report that taints without a rule evict pods, too."""
    from sully.machinery.formats.plurals import number_of
    from sully.views.evictions import due_without_rules

    pods = [key for key in due_without_rules(exposures) if session.namespace in ("", key.namespace)]
    if pods and not session.options.rules and not session.options.selector:
        session.warn(
            f"{number_of(len(pods), 'pod')} will be evicted because of taints of drivers or"
            " patches; list them with 'sully devices --tainted'"
        )


def kinds_for(session: Session) -> "tuple[Kind[Any], ...]":
    from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS
    from sully.views.snapshot.kinds import DEVICES

    kinds = (*DEVICES, TAINT_RECORDS)
    # There may be very many; only a count per namespace needs each of them.
    return (*kinds, EVICTION_RECORDS) if session.namespace else kinds


class Loaded(Protocol):
    """Objects by kind, and why some are missing: a snapshot, or caches."""

    def of(self, kind: "Kind[T]") -> "Cache[T]":
        """Return the objects of a kind."""

    def gap(self, kind: "Kind[Any]") -> "Gap | None":
        """Return why a kind is missing, or None if it is not."""


def progress_in(
    session: Session, exposures: "Exposures", loaded: Loaded, plane: "ControlPlane"
) -> "Iterator[EvictionProgress]":
    """Yield the progress of rules, in the given namespace."""
    from sully.views.evictions import count_evicted, in_namespace
    from sully.views.kinds import EVICTION_RECORDS

    selected = _selected_progress(session, exposures, loaded, plane)
    if not session.namespace:
        yield from selected
        return
    left = count_evicted(session.namespace, loaded.of(EVICTION_RECORDS).values())
    for progress in selected:
        progress = in_namespace(session.namespace, progress, left, exposures.now())
        if progress.pending or progress.evicted or progress.terminating:
            yield progress


def _selected_progress(
    session: Session, exposures: "Exposures", loaded: Loaded, plane: "ControlPlane"
) -> "Iterator[EvictionProgress]":
    """Yield the progress of the rules that names and labels select, in all namespaces."""
    from sully.views.evictions import inactive_progress, progress_of
    from sully.views.kinds import CLAIMS, CONSUMER_PODS, RULES, TAINT_RECORDS

    gap = loaded.gap(TAINT_RECORDS)
    # Without access to records, the status of the rules still has the number.
    served = gap is None or gap.reason != "not served"
    recorded = served and plane.evictor == "Sully"
    rules, records = loaded.of(RULES).values(), loaded.of(TAINT_RECORDS)
    seen = all(is_known(loaded.gap(kind)) for kind in (CONSUMER_PODS, CLAIMS))
    labels = read_selector(session.options.selector)
    all_progress = (
        progress_of(rules, exposures, records, exposures.now(), has_records=recorded, visible=seen)
        if plane.honors_rules
        else inactive_progress(rules, records, has_records=recorded)
    )
    for progress in all_progress:
        metadata = progress.rule.metadata
        if _is_selected(session, metadata.name) and labels.matches(metadata.labels):
            yield progress


def _is_selected(session: Session, rule: str) -> bool:
    return any_glob_matches([rule_named(name) for name in session.options.rules], rule)


async def _watch(session: Session) -> int:
    from sully.cli.inspect.evictions.watch import watch

    return await watch(session)


async def _set_pauses(session: Session) -> int:
    from sully.cli.inspect.evictions.pause import set_pauses

    return await set_pauses(session)
