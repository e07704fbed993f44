"""How a command line selects devices: the arguments and flags that all commands share.

    device NAME...   DRIVER/POOL/DEVICE with globs, NODE, NODE/DEVICE, DEVICE, a UUID, or a prefix
    node NAME...     the devices of nodes
    class NAME...    the devices of DeviceClasses

What they select is decided by device_selection.py.
"""

from collections.abc import Sequence

import click
import msgspec

from sully.cli.client.options import options as join
from sully.cli.client.options import selecting_option
from sully.cli.command import CommandError, Options
from sully.cli.names import complete_classes
from sully.cli.output.text import did_you_mean
from sully.machinery.formats.plurals import number_of

DEVICE, NODE, CLASS = "device", "node", "class"
DEVICE_KINDS = {
    DEVICE: (DEVICE, "devices", "dev"),
    NODE: (NODE, "nodes", "no"),
    CLASS: (CLASS, "classes", "deviceclass", "deviceclasses"),
}
"""The kinds by which devices are selected, with their aliases."""
_RULE_KINDS = ("rule", "rules", "devicetaintrule", "devicetaintrules")
_OTHER_KINDS = ("pod", "pods", "deployment", "statefulset", "job", "resourceclaim")
"""Kinds with devices that commands explain."""
NAMES_HELP = """\
\b
NAME of a device is one of:
  DRIVER/POOL/DEVICE  each a name, a glob or *; parts left out at the end are *
  NODE/DEVICE         a device of a node
  NODE                all devices of a node
  DEVICE              if only one device has that name
  UUID                the UUID that the driver publishes
  a prefix of these, if only one device has it
"""
"""For the help of commands."""


class SelectionArgs(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that a command line selects; every criterion that is set has to match."""

    kind: str = DEVICE
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    """Devices of any of them."""
    expressions: tuple[str, ...] = ()
    """CEL; all have to be true."""
    labels: str = ""
    """A label selector for the nodes of the devices."""
    uuids: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    allow_missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Report whether nothing is specified, which is not the same as everything."""
        return not self.names and self.is_only_names

    @property
    def is_only_names(self) -> bool:
        """Report whether there are no other criteria than names."""
        return not (self.classes or self.expressions or self.labels or self.uuids or self.pci)

    def describe(self) -> str:
        """Return the criteria as text: `devices of class a100 on nodes with zone=a`."""
        what = ", ".join(self.names) if self.names and self.kind == DEVICE else "devices"
        return " ".join((what, *self._criteria()))

    def describe_some(self, count: int) -> str:
        """Return how many devices are selected, and by what: `8 devices of node node-7`."""
        if count == 1 and self.kind == DEVICE and len(self.names) == 1:
            return f"device {self.names[0]}"
        return " ".join((number_of(count, "device"), *self._criteria()))

    def _criteria(self) -> list[str]:
        parts = []
        if self.kind == NODE and self.names:
            parts.append(f"of node {' or '.join(self.names)}")
        if self.classes:
            parts.append(f"of class {' or '.join(self.classes)}")
        if self.expressions:
            parts.append(f"matching {' and '.join(self.expressions)}")
        if self.labels:
            parts.append(f"on nodes with {self.labels}")
        if self.uuids:
            parts.append(f"with UUID {' or '.join(self.uuids)}")
        if self.pci:
            parts.append(f"with PCI address {' or '.join(self.pci)}")
        return parts


def read_selection(options: Options, kind: str, names: Sequence[str]) -> SelectionArgs:
    """Return the selection of a command line whose KIND and names are known."""
    classes = (*names, *options.classes) if kind == CLASS else options.classes
    args = SelectionArgs(
        kind=kind,
        names=() if kind == CLASS else tuple(names),
        classes=tuple(map(_class_name, dict.fromkeys(classes))),
        expressions=tuple(options.cel),
        labels=options.selector,
        uuids=tuple(options.uuid),
        pci=tuple(options.pci),
        allow_missing=bool(getattr(options, "allow_missing", False)),
    )
    if not all(name.strip() for name in names):
        raise CommandError(f"the name of a {kind} is empty", code=2)
    if args.is_empty or (kind != DEVICE and not names):
        what = {NODE: "node", CLASS: "class"}.get(kind)
        text = f"no {what} specified" if what and not names else "no devices specified"
        if kind == NODE and args.labels:
            # As in `kubectl drain -l`.
            raise CommandError(f"{text}; for nodes with labels: device -l {args.labels}", code=2)
        raise CommandError(
            f"{text}: {kind} NAME..., or --class, --cel, -l, --uuid, --pci with device"
            " (device '*' for all)",
            code=2,
        )
    return args


def split_kind(arguments: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return KIND and the names after it; `KIND/NAME`, as kubectl prints it, is one of each."""
    if not arguments:
        raise CommandError(f"missing argument: one of {', '.join(DEVICE_KINDS)}", code=2)
    first = arguments[0]
    before, slash, _ = first.partition("/")
    if (kind := kind_named(before)) is not None:
        return kind, tuple(arguments if slash else arguments[1:])
    raise CommandError(_unknown_kind(arguments), code=2)


def _unknown_kind(arguments: Sequence[str]) -> str:
    """Return what is wrong with the first argument, with a suggestion."""
    first = arguments[0]
    before = first.partition("/")[0].lower().partition(".")[0]
    if before in _RULE_KINDS:
        return (
            f'"{first}" is a rule (one of: {", ".join(DEVICE_KINDS)})\n'
            "  to delete rules:  sully untaint rule NAME..."
        )
    hint = did_you_mean(first, (alias for kinds in DEVICE_KINDS.values() for alias in kinds))
    return f'unknown value "{first}" (one of: {", ".join(DEVICE_KINDS)}){hint}{instead(arguments)}'


def instead(arguments: Sequence[str]) -> str:
    """Return what to write where a kind is missing or another one, as a further line."""
    first, *names = arguments
    if first.partition("/")[0].lower().partition(".")[0] in _OTHER_KINDS:
        return f"\n  to find its devices:  sully explain {first}"
    # As in `kubectl cordon NODE`; and `gpu NODE/DEVICE` means the device.
    name = names[0] if names else first
    return f"\n  for example: {DEVICE if '/' in name else NODE} {name}"


def kind_named(word: str) -> str | None:
    """Return the kind that an argument names; `deviceclass.resource.k8s.io` is one, too."""
    short = word.lower().partition(".")[0]
    return next((kind for kind, aliases in DEVICE_KINDS.items() if short in aliases), None)


def _class_name(text: str) -> str:
    """Return the name in `deviceclass.resource.k8s.io/NAME`, or the name itself."""
    kind, slash, name = text.partition("/")
    return name if slash and kind_named(kind) == CLASS else text


selection_options = join(
    selecting_option(
        "--class",
        "classes",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_classes,
        help="Only devices that match the selectors of this DeviceClass. Can be repeated: devices"
        " of any of them.",
    ),
    selecting_option(
        "--cel",
        multiple=True,
        metavar="EXPR",
        help="Only devices for which this CEL expression is true. Can be repeated: all have to be"
        " true.",
    ),
    selecting_option(
        "--selector",
        "-l",
        default="",
        metavar="LABELS",
        help="Label selector to filter by: labels of the node of a device, for example zone=a.",
    ),
    selecting_option(
        "--uuid",
        multiple=True,
        metavar="UUID",
        help="Only the device with this UUID, and its partitions. Can be repeated.",
    ),
    selecting_option(
        "--pci",
        multiple=True,
        metavar="ADDRESS",
        help="Only devices with this PCI address (0000:3b:00.0), or behind this PCIe root"
        " (pci0000:3a). Can be repeated.",
    ),
)
"""The flags that select devices, in addition to names."""
allow_missing_option = click.option(
    "--allow-missing",
    is_flag=True,
    help="Accept DRIVER/POOL/DEVICE and classes that match no device yet.",
)
