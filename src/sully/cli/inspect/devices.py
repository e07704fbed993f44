"""`sully devices`: every device with what is on it and who uses it."""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import Session, call
from sully.cli.client.flags import (
    NAMES,
    OUTPUTS,
    add_client_flags,
    add_headers_flag,
    add_snapshot_flag,
)
from sully.cli.client.taking import is_known, take
from sully.cli.client.words import number

if TYPE_CHECKING:
    from datetime import datetime

    from sully.client.transport import Kind
    from sully.views.devices.details import Sight, Sights
    from sully.views.devices.inventory import Inventory
    from sully.views.snapshot.snapshot import Snapshot

_EPILOG = """\
examples:
  sully devices                               all of them
  sully devices --tainted                     those with a taint, its origin, age and end
  sully devices 'gpu.example.com/*/gpu-0'     one device of every pool; a part may be a glob
  sully devices '*/node-7' '*/node-9'         all that any of several patterns names
  sully devices --free --class big-gpu        what a claim for this class could still get
  sully devices --node node-7 -o wide         with attributes, claims and tolerations
  sully devices --tainted -o json | jq -r '.devices[].users[].pods[]?.name'
  sully devices --free -o name                names alone, a line each
  sully devices --watch                       and then every device that changes

TAINTS has the taint, then who set it (rule/NAME, patch/NAME, or the driver), how long ago, and when
it ends if that is known. USED BY has pods, with how much they take of a device that is shared, and
when they must leave because of a taint; in brackets, why nobody can have a device that nobody has.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Show devices as they count: with effective taints, and with their users."
    parser.epilog = _EPILOG
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="DRIVER/POOL/DEVICE, each a name or a glob; what is left out at the end is any"
        " (default: all devices)",
    )
    parser.add_argument("--tainted", action="store_true", help="only devices with a taint")
    parser.add_argument(
        "--free",
        action="store_true",
        help="only devices that a claim could get now, or a share of them; taints aside",
    )
    parser.add_argument("--node", default="", metavar="N", help="only devices of this node")
    parser.add_argument(
        "--class",
        dest="device_class",
        default="",
        metavar="C",
        help="only devices that the selectors of this DeviceClass match",
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="go on, and print devices that change"
    )
    add_client_flags(
        parser,
        namespace="only devices that this namespace uses (default: all)",
        outputs=(*OUTPUTS, NAMES),
    )
    add_headers_flag(parser)
    add_snapshot_flag(parser)


def run(options: argparse.Namespace) -> int:
    """Show the devices."""
    return call(options, "devices", _watch if options.watch else _show)


async def _show(session: Session) -> int:
    from sully.cli.client.guessing import check_class, nearest
    from sully.views.devices.details import Sights
    from sully.views.kinds import CLAIMS, PATCHES, SLICES
    from sully.views.snapshot.kinds import DEVICES

    found = await take(session, DEVICES, needed=needed_kinds(session), in_files=(SLICES,))
    check_class(found, session.options.device_class)
    known = is_known(found.gap(CLAIMS))
    sights = Sights(found.inventory, found.usage, found.of(PATCHES), users_known=known)
    choice = Choice(session, found.inventory, sights)
    if not print_devices(session, choice.all(found.taken), found.taken):
        session.warn(_nothing(session, found))
    elif session.options.patterns:
        for pattern in choice.unmet:
            session.warn(f"there is no device {pattern}{nearest(found, pattern)}")
    for note in _ignored(found.inventory):
        session.warn(f"warning: {note}")
    return 0


def _ignored(inventory: "Inventory") -> "Iterator[str]":
    """Say which slices do not count because their pool is not their node's own."""
    from sully.domain.devices.pools import pool_of
    from sully.machinery.gotext import quote

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
    """Return the kinds without which what was asked has no answer, or a wrong one."""
    from sully.views.kinds import CLAIMS, CLASSES, SLICES

    found: list[Kind[Any]] = [SLICES]
    if session.options.free:
        found.append(CLAIMS)
    if session.options.device_class:
        found.append(CLASSES)
    return tuple(found)


def _nothing(session: Session, found: "Snapshot") -> str:
    """Say that nothing was found, and whether there is anything at all."""
    known = sum(len(found.inventory.devices(each)) for each in found.inventory.pools())
    if not known:
        return "no driver publishes devices here"
    guess, asked = _guess(session, found), list(_asked(session))
    if guess or not asked:
        return f"there is no such device{guess}"
    return f"none of {number(known, 'device')} is {' and '.join(asked)}"


def _asked(session: Session) -> "Iterator[str]":
    """Say in words which devices the flags ask for."""
    options = session.options
    if options.patterns:
        yield f"called {' or '.join(options.patterns)}"
    if options.node:
        yield f"on node {options.node}"
    if options.device_class:
        yield f"of class {options.device_class}"
    if options.tainted:
        yield "tainted"
    if options.free:
        yield "free"
    if session.namespace:
        yield f"used in namespace {session.namespace}"


def _guess(session: Session, found: "Snapshot") -> str:
    """Ask whether another device or node was meant."""
    from sully.cli.client.guessing import nearest
    from sully.cli.client.patterns import parse_patterns
    from sully.cli.parsing import meant
    from sully.views.devices.details import node_of

    inventory, node = found.inventory, session.options.node
    nodes = {
        node_of(each.published)
        for pool in (inventory.pools() if node else ())
        for each in inventory.devices(pool).values()
    }
    if node and node not in nodes:
        return meant(node, nodes)
    guesses = (nearest(found, each) for each in parse_patterns(session.options.patterns))
    return next(filter(None, guesses), "")


def print_devices(session: Session, sights: "Iterator[Sight]", now: "datetime") -> bool:
    """Print devices in the form that was asked for; say whether there was anything to print."""
    from sully.cli.client.documents import show_document
    from sully.cli.client.flags import TABLES
    from sully.cli.client.tables import Table
    from sully.cli.inspect.devicerows import columns, document, row

    output = session.options.output
    if output == NAMES:
        names = [f"{each.id}\n" for each in sights]
        sys.stdout.writelines(names)
        return bool(names)
    if output not in TABLES:
        show_document({"devices": [document(each) for each in sights]}, output)
        return True
    wide = output == "wide"
    found = list(sights)
    if found:
        table = Table(columns(found, wide=wide), titled=not session.options.no_headers)
        table.show([row(each, now, wide=wide) for each in found])
    return bool(found)


async def _watch(session: Session) -> int:
    from sully.cli.inspect.devicewatch import watch

    return await watch(session)


class Choice:
    """The devices that the flags ask for."""

    def __init__(self, session: Session, inventory: "Inventory", sights: "Sights") -> None:
        from sully.cli.client.guessing import no_class
        from sully.cli.client.patterns import parse_patterns

        options = session.options
        self._sights = sights
        self._patterns = parse_patterns(options.patterns)
        self.unmet = dict.fromkeys(self._patterns)
        """The patterns that have named no device yet, whatever else is asked of it."""
        self._tests = list(_tests(session, sights))
        if options.device_class and inventory.class_(options.device_class) is None:
            raise no_class(options.device_class)

    def all(self, now: "datetime") -> "Iterator[Sight]":
        """Yield all that are asked for."""
        for pool in self._sights.pools():
            yield from self.pool(pool.driver, pool.pool, now)

    def pool(self, driver: str, pool: str, now: "datetime") -> "Iterator[Sight]":
        """Yield those of one pool."""
        from sully.domain.devices.pools import PoolId

        near = [each for each in self._patterns if each.matches_pool(driver, pool)]
        for sight in self._sights.pool(PoolId(driver, pool), now) if near else ():
            met = [each for each in near if each.matches(*sight.id)]
            for each in met:
                self.unmet.pop(each, None)
            if met and all(test(sight) for test in self._tests):
                yield sight


def _tests(session: Session, sights: "Sights") -> "Iterator[Callable[[Sight], bool]]":
    options = session.options
    if options.tainted:
        yield lambda sight: bool(sight.marks)
    if options.free:
        yield lambda sight: sight.free
    if options.node:
        yield lambda sight: sight.node == options.node
    if session.namespace:
        yield lambda sight: any(each.claim.namespace == session.namespace for each in sight.holders)
    if options.device_class:
        yield lambda sight: sights.in_class(sight, options.device_class)
