"""`sully devices`: every device with its taints and its pods."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
from sully.cli.command import Options, command
from sully.cli.names import complete_devices, complete_nodes
from sully.cli.output.text import did_you_mean
from sully.cli.selection.args import selection_options
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from datetime import datetime

    from sully.client.transport import Kind
    from sully.views.devices.device_views import DeviceView
    from sully.views.devices.inventory import Inventory

_HELP = """\
List devices with their effective taints and the pods that use them.

PATTERN is DRIVER/POOL/DEVICE. Each part is a name or a glob; parts that are left out at the end
match any name. NODE, NODE/DEVICE, DEVICE, a UUID and a unique prefix are accepted, too. Without a
pattern, all devices are listed. With --watch, short names, --cel, -l, --uuid and --pci select the
devices that exist when the command starts.

TAINTS shows each taint with its source (rule/NAME, patch/NAME or driver), its age, when it expires,
if that is known, and which policy suppresses it, so that its effect is None. USED BY shows the
pods, how much capacity they use of a shared device, and when they will be evicted because of a
taint. In parentheses: why an unused device cannot be allocated, or that it was allocated to claims
that cannot all use it (red).
"""
_EXAMPLES = """\
# List all devices
sully devices

# List devices with taints
sully devices --tainted

# List one device of every pool, or all devices of two pools
sully devices 'gpu.example.com/*/gpu-0'
sully devices '*/node-7' '*/node-9'

# List devices of a class that a new pod could get
sully devices --free --class big-gpu

# List devices by attribute, by label of their node, by UUID
sully devices --cel 'device.attributes["gpu.example.com"].model == "a100"'
sully devices -l zone=a
sully devices --uuid GPU-3b1f0b9e-5b6c-4d3c-9f1e-0f6a2c1d7e55

# List the devices of a node with attributes, claims and tolerations
sully devices --node node-7 -o wide

# Print the pods on tainted devices
sully devices --tainted -o json | jq -r '.devices[].users[].pods[]?.name'

# Print the names of free devices, or these and their nodes
sully devices --free -o name
sully devices --free -o custom-columns=DEVICE:.device,NODE:.node

# List devices, then watch for changes
sully devices --watch
"""


@command("devices", usage="[PATTERN...] [flags]", help=_HELP, examples=_EXAMPLES)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=complete_devices)
@click.option("--tainted", is_flag=True, help="Only devices with taints.")
@click.option(
    "--free",
    is_flag=True,
    help="Only devices that a new pod without tolerations could get now, or a share of: untainted,"
    " on a schedulable node, in a complete pool.",
)
@selecting_option(
    "--node",
    default="",
    metavar="NAME",
    shell_complete=complete_nodes,
    help="Only devices of this node.",
)
@selection_options
@watch_option
@client_options(
    namespace="If present, only devices used in this namespace.", outputs=(*OUTPUTS, NAMES)
)
@no_headers_option
@snapshot_option
def devices(options: Options) -> int:
    return call(options, "devices", _watch if options.watch else _show)


async def _show(session: Session) -> int:
    from sully.cli.client.inaction import warn_of_inactions
    from sully.cli.inspect.devices.filters import Selection, narrowed
    from sully.cli.selection.files import files_hint
    from sully.cli.selection.suggestions import check_class, device_not_found
    from sully.views.devices.device_views import DeviceViews
    from sully.views.inactions import ON_DEVICES, inactions_in
    from sully.views.kinds import CLAIMS, PATCHES, SLICES
    from sully.views.snapshot.kinds import DEVICES, NODES
    from sully.views.snapshot.loading import with_nodes

    taking = take_snapshot(session, DEVICES, needed=needed_kinds(session), in_files=(SLICES,))
    is_file = bool(session.options.snapshot)
    snapshot = await (taking if is_file else with_nodes(session.transport, taking))
    for name in session.options.classes:
        check_class(snapshot, name)
    inventory, known = snapshot.inventory, is_known(snapshot.gap(CLAIMS))
    views = DeviceViews(
        inventory,
        snapshot.usage,
        snapshot.of(PATCHES),
        plane=snapshot.control_plane,
        nodes=snapshot.of(NODES),
        claims_visible=known,
    )
    narrow = narrowed(session, snapshot)
    selection = Selection(session, inventory, views, narrow)
    conflicts: list[DeviceView] = []
    shown = _collect_conflicts(selection.all(snapshot.taken), conflicts)
    printed = print_devices(session, shown, snapshot.taken)
    not_found = [
        narrow.missing.get(pattern) or device_not_found(snapshot, pattern)
        for pattern in (selection.unmatched if session.options.patterns else ())
    ]
    for text in not_found:
        session.warn(f"error: {text}")
    if not_found and (hint := files_hint(session.options.patterns)):
        session.warn(hint.lstrip("\n"))
    if not printed and not not_found:
        session.warn(_none_found(session, inventory))
    for note in (*_ignored_slices(inventory), *_conflict_warnings(conflicts)):
        session.warn(f"warning: {note}")
    plane = snapshot.control_plane
    warn_of_inactions(session, inactions_in(snapshot, plane, ON_DEVICES))
    return 1 if not_found else 0


def _collect_conflicts(
    views: "Iterator[DeviceView]", conflicts: "list[DeviceView]"
) -> "Iterator[DeviceView]":
    for view in views:
        if view.conflict is not None:
            conflicts.append(view)
        yield view


def _conflict_warnings(views: "Sequence[DeviceView]") -> "Iterator[str]":
    """Yield how many devices were allocated to claims that cannot all use them, and the remedy."""
    if views:
        one = len(views) == 1
        yield (
            f"{number_of(len(views), 'device')} {'is' if one else 'are'} allocated to claims that"
            f" cannot all use {'it' if one else 'them'}: delete the pods that use such a device;"
            f" see 'sully explain device {views[0].id}'"
        )


def _ignored_slices(inventory: "Inventory") -> "Iterator[str]":
    """Yield which slices are ignored because their pool belongs to another node."""
    from sully.domain.devices.pools import pool_of
    from sully.machinery.serialization.gotext import quote

    for slice_ in inventory.ignored_slices():
        pool = inventory.pool(pool_of(slice_))
        owner = pool.owner if pool is not None else ""
        whose = f"belongs to node {quote(owner)}" if owner else "is not local to a node"
        yield (
            f"ResourceSlice {quote(slice_.metadata.name)} of node"
            f" {quote(slice_.spec.node_name or '')} is ignored: pool"
            f" {quote(slice_.spec.pool.name)} of driver {quote(slice_.spec.driver)} {whose}"
        )


def needed_kinds(session: Session) -> "tuple[Kind[Any], ...]":
    """Return the kinds that the output cannot do without."""
    from sully.views.kinds import CLAIMS, CLASSES, SLICES
    from sully.views.snapshot.kinds import NODES

    kinds: list[Kind[Any]] = [SLICES]
    if session.options.free:
        kinds.append(CLAIMS)
    if session.options.classes:
        kinds.append(CLASSES)
    if session.options.selector:
        kinds.append(NODES)
    return tuple(kinds)


def _none_found(session: Session, inventory: "Inventory") -> str:
    """Return that no device is listed, and how many devices there are."""
    from sully.views.devices.device_views import node_of

    devices = [x for pool in inventory.pools() for x in inventory.devices(pool).values()]
    if not devices:
        return "No devices found: no driver has published any."
    nodes, node = {node_of(device.published) for device in devices}, session.options.node
    if node and node not in nodes:
        return f'No devices found on node "{node}"{did_you_mean(node, nodes)}.'
    if not (criteria := list(_criteria(session))):
        return "No devices found."
    total = number_of(len(devices), "device")
    return f"No devices found: none of {total} is {' and '.join(criteria)}."


def _criteria(session: Session) -> "Iterator[str]":
    options = session.options
    if options.patterns:
        yield f"named {' or '.join(options.patterns)}"
    if options.node:
        yield f"on node {options.node}"
    if options.classes:
        yield f"of class {' or '.join(options.classes)}"
    if options.tainted:
        yield "tainted"
    if options.free:
        yield "free"
    if session.namespace:
        yield f"used in namespace {session.namespace}"


def print_devices(session: Session, views: "Iterator[DeviceView]", now: "datetime") -> bool:
    """Print devices in the output format; report whether there were any."""
    from sully.cli.inspect.devices.printer import columns, document, row
    from sully.cli.output.printers import print_document
    from sully.cli.output.tables import Table

    output = session.options.output
    if output == NAMES:
        names = [f"{view.id}\n" for view in views]
        sys.stdout.writelines(names)
        return bool(names)
    if output not in TABLES:
        shared = output == "json"
        documents = {"devices": [document(view, shared=shared) for view in views]}
        titled = not session.options.no_headers
        print_document(documents, output, ("devices",), titled=titled)
        return True
    wide = output == "wide"
    rows = [row(view, now, wide=wide) for view in views]
    if rows:
        Table(columns(wide=wide), titled=not session.options.no_headers).show(rows)
    return bool(rows)


async def _watch(session: Session) -> int:
    from sully.cli.inspect.devices.watch import watch

    return await watch(session)
