"""`sully rules`: what taints devices, and its effect on pods."""

import sys
from typing import TYPE_CHECKING, Any

import click

from sully.cli.client.options import (
    NAMES,
    OUTPUTS,
    TABLES,
    all_namespaces_option,
    client_options,
    no_headers_option,
    selecting_option,
    snapshot_option,
)
from sully.cli.client.session import Session, call
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import Options, command
from sully.cli.names import SUBJECTS, completer
from sully.cli.output.formatting import object_name
from sully.cli.output.text import did_you_mean
from sully.cli.selection.files import files_hint
from sully.cli.selection.globs import glob_matches
from sully.cli.selection.selectors import read_selector, rule_named
from sully.client.transport import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Snapshot
    from sully.views.taint_sources import TaintSource

_HELP = """\
List everything that taints devices: DeviceTaintRules, ResourceSlicePatches, the taints that drivers
publish, and their taint slices.

Rules that one command created are one row, with their number. NAME is the name or a glob of a rule
or patch, of a driver, or the label that several rules share.

DEVICES shows how many devices have the taint, or that none matches. PODS shows the pods that will
be evicted, were evicted, or keep running although they do not tolerate the taint. 2+ means at least
two: the eviction controller of Kubernetes only counts since it was started. ENDS is when a rule
expires.
"""
_EXAMPLES = """\
# List everything that taints devices
sully rules

# List the rules that one command created, with their names
sully rules firmware -o wide

# List the rules of cordons and drains
sully rules -l 'sully.dev/operation in (cordon, drain)'

# Print what matches no device
sully rules -o json | jq -r '.sources[] | select(.state == "no device").name'
"""


@command("rules", usage="[NAME...] [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("rules", nargs=-1, metavar="[NAME]...", shell_complete=completer(SUBJECTS["rule"]))
@selecting_option(
    "--selector",
    "-l",
    default="",
    metavar="LABELS",
    help="Selector (label query) to filter rules, patches and slices on. A row of several has one"
    " that matches.",
)
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
@all_namespaces_option("If present, count pods in all namespaces (the default).")
@no_headers_option
@snapshot_option
def rules(options: Options) -> int:
    return call(options, "rules", _show)


async def _show(session: Session) -> int:
    from sully.cli.client.inaction import warn_of_inactions
    from sully.cli.inspect.rules_printer import columns, document, row
    from sully.cli.output.printers import print_document
    from sully.cli.output.tables import Table
    from sully.views.inactions import inactions_in
    from sully.views.kinds import SLICES, TAINT_RECORDS
    from sully.views.snapshot.kinds import DEVICES
    from sully.views.taint_sources import taint_sources

    snapshot = await take_snapshot(session, (*DEVICES, TAINT_RECORDS), needed=(SLICES,))
    sources, output = taint_sources(snapshot), session.options.output
    patterns = [rule_named(text) for text in session.options.rules]
    labelled = _labelled(snapshot, session.options.selector)
    shown = [
        x
        for x in sources
        if (not patterns or any(_matches(x, text) for text in patterns)) and labelled(x)
    ]
    if output == NAMES:
        names = (_full_name(session, x, name) for x in shown for name in x.objects)
        sys.stdout.writelines(f"{name}\n" for name in dict.fromkeys(names))
    elif output not in TABLES:
        titled = not session.options.no_headers
        documents = {"sources": [document(x) for x in shown]}
        print_document(documents, output, ("sources",), titled=titled)
    elif shown:
        wide = output == "wide"
        table = Table(columns(wide=wide), titled=not session.options.no_headers)
        table.show([row(x, snapshot.taken, wide=wide) for x in shown])
    elif session.options.selector:
        session.warn(f"Nothing that taints devices matches -l {session.options.selector}.")
    elif not patterns:
        session.warn("No device is tainted.")
    known = [name for x in sources for name in (x.name, *x.objects)]
    missing = [text for text in patterns if not any(_matches(x, text) for x in sources)]
    warn_of_inactions(session, inactions_in(snapshot, snapshot.control_plane))
    for text in missing:
        session.warn(f'error: rule, patch or driver "{text}" not found{did_you_mean(text, known)}')
    if missing:
        session.warn(f"  list them with 'sully rules'{files_hint(missing)}")
    return 1 if missing else 0


def _full_name(session: Session, source: "TaintSource", name: str) -> str:
    """Return the name of an object that sets a taint; a driver does so in its slices."""
    from sully.views.kinds import PATCHES, RULES, SLICES

    kinds: dict[str, Kind[Any]] = {"rule": RULES, "patch": PATCHES}
    kind = kinds.get(source.kind, SLICES)
    body = {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": kind.kind,
        "metadata": {"name": name},
    }
    served = session.connection.as_served(body) if session.connection is not None else body
    return object_name(served)


def _labelled(snapshot: "Snapshot", selector: str) -> "Callable[[TaintSource], bool]":
    """Return whether a source has an object with these labels."""
    from sully.views.kinds import PATCHES, RULES, SLICES

    kinds: dict[str, Kind[Any]] = {"rule": RULES, "patch": PATCHES}
    labels = read_selector(selector)

    def is_labelled(source: "TaintSource") -> bool:
        kind = kinds.get(source.kind, SLICES)
        objects = (snapshot.get(kind, Key("", name)) for name in source.objects)
        return any(obj is not None and labels.matches(obj.metadata.labels) for obj in objects)

    return is_labelled if selector else lambda _: True


def _matches(source: "TaintSource", pattern: str) -> bool:
    return any(glob_matches(pattern, name) for name in (source.name, *source.objects))
