"""`sully status`: the state of all devices on one screen."""

from typing import TYPE_CHECKING, Any

from sully.cli.client.options import (
    OUTPUTS,
    TABLES,
    client_options,
    no_headers_option,
    snapshot_option,
    watch_option,
)
from sully.cli.client.session import Session, call
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import Options, command

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Snapshot

_HELP = """\
Show the state of all devices on one screen.

For each DeviceClass: how many devices there are, how many are in use, how many are free (a new pod
without tolerations could get them now: untainted, on a schedulable node, in a complete pool), how
many are tainted, by the strongest effect, and how many pods that request the class are Pending. A
device can be in several classes.

Below: eviction loops, devices that are allocated to claims that cannot all use them, disabled
feature gates, what taints devices, maintenances, evictions in progress, and Pending pods. With
-o wide also the devices of each node.
"""
_EXAMPLES = """\
# Show the state of all devices
sully status

# Also by node
sully status -o wide

# Show it again whenever it changes
sully status --watch

# Print the number of free devices of each class
sully status -o json | jq -r '.classes[] | "\\(.class) \\(.free)"'
"""


@command("status", usage="[flags]", help=_HELP, examples=_EXAMPLES)
@watch_option
@client_options(
    namespace="Only count Pending pods of this namespace, and read only it if you may not list"
    " objects in all of them.",
    outputs=OUTPUTS,
)
@no_headers_option
@snapshot_option
def status(options: Options) -> int:
    return call(options, "status", _watch if options.watch else _show)


def kinds() -> "tuple[Kind[Any], ...]":
    from sully.views.kinds import MAINTENANCES, TAINT_RECORDS
    from sully.views.snapshot.kinds import SCHEDULING

    return (*SCHEDULING, TAINT_RECORDS, MAINTENANCES)


async def _show(session: Session) -> int:
    from sully.cli.client.inaction import warn_of_inactions
    from sully.views.inactions import inactions_in
    from sully.views.kinds import SLICES

    snapshot = await take_snapshot(
        session, kinds(), needed=(SLICES,), in_files=(SLICES,), gates=True
    )
    _print(session, await _with_events(session, snapshot))
    warn_of_inactions(session, inactions_in(snapshot, snapshot.control_plane))
    return 0


async def _with_events(session: Session, snapshot: "Snapshot") -> "Snapshot":
    from sully.views.snapshot.loading import with_eviction_events

    if session.options.snapshot:
        return snapshot
    return await with_eviction_events(session.transport, snapshot)


def _print(session: Session, snapshot: "Snapshot") -> None:
    from sully.cli.inspect.status_printer import (
        CLASS_COLUMNS,
        NODE_COLUMNS,
        NOTE_COLUMNS,
        class_rows,
        document,
        node_rows,
        notes,
    )
    from sully.cli.output.printers import print_document, print_event
    from sully.cli.output.tables import Table
    from sully.views.kinds import CLAIMS
    from sully.views.status import status_of

    output, gap = session.options.output, snapshot.gap(CLAIMS)
    # Claims of other namespaces use devices, too; a watch of one namespace does not have them.
    partly = bool(session.options.watch and session.namespace)
    visible = not partly and (gap is None or gap.reason != "not allowed")
    state = status_of(snapshot, claims_visible=visible, namespace=session.namespace)
    titled = not session.options.no_headers
    if output not in TABLES:
        body = document(state, visible=visible)
        if session.options.watch:
            print_event(body, output)
        else:
            print_document(body, output, ("classes",), titled=titled)
        return
    Table(CLASS_COLUMNS, titled=titled).show(class_rows(state, visible=visible))
    if output == "wide":
        print()
        Table(NODE_COLUMNS, titled=titled).show(node_rows(state, visible=visible))
    print()
    Table(NOTE_COLUMNS, titled=False).show(notes(state, snapshot.taken))


async def _watch(session: Session) -> int:
    from sully.cli.client.watching import (
        PendingChanges,
        acting_here,
        rest_after,
        snapshot_of,
        watch_kinds,
    )
    from sully.views.kinds import SLICES

    async with watch_kinds(session, kinds(), needed=(SLICES,)) as caches:
        plane, changes = await acting_here(session), PendingChanges()
        for kind in kinds():
            caches.of(kind).on_change(lambda *_: changes.add("something"))
        while True:
            begun = session.clock.monotonic()
            snapshot = snapshot_of(session, caches, kinds(), plane)
            _print(session, await _with_events(session, snapshot))
            # Everything is counted again.
            rest = rest_after(session.clock.monotonic() - begun)
            await changes.wait(session, caches, max(rest, 1.0))
            if session.options.output in TABLES:
                print()
