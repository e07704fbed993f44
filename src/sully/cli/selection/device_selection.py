"""The devices that a command line selects, and the rules that select them on a server.

All commands that work on devices use `select_devices`. What is decided here is decided from a
snapshot (`resolve`); only which criteria a server has in its rules is asked from it.

    snapshot = await take_snapshot(session, (..., *selection_kinds(args)), needed=...)
    selection = await select_devices(session, snapshot, args)
    selection.devices      # DeviceIds, sorted
    selection.selectors    # one RuleSelector per rule: taint_rules.build_rules
    selection.note         # what to print about devices that appear later; may be empty
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import CELDeviceSelector, DeviceSelector, DeviceTaintSelector
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.text import did_you_mean
from sully.cli.selection.args import DEVICE, NODE, SelectionArgs
from sully.cli.selection.files import EXPANDED, current_files
from sully.cli.selection.globs import is_glob
from sully.cli.selection.selectors import parse_pattern, read_selector
from sully.cli.selection.suggestions import check_class
from sully.client.discovery.capabilities import probe
from sully.domain.capabilities.offers import offer
from sully.domain.devices.rules import NO, choose_by_content
from sully.views.kinds import CLASSES
from sully.views.snapshot.kinds import NODES

if TYPE_CHECKING:
    from sully.cli.selection.device_names import DeviceNames, NamedDevices
    from sully.client.transport import Kind
    from sully.domain.devices.pools import DeviceId
    from sully.domain.planning.rules.selectors import RuleSelector
    from sully.views.snapshot.snapshot import Snapshot

CLASS_FIELD, CEL_FIELD = "deviceClassName", "selectors"
ALL_FIELDS = frozenset({CLASS_FIELD, CEL_FIELD})
"""The criteria of rules that Kubernetes does not have."""
_MOST = 5
"""How many missing names are listed."""


class DeviceSelection(msgspec.Struct, frozen=True):
    """The devices that are selected now, and what selects them in rules."""

    devices: "tuple[DeviceId, ...]"
    selectors: "tuple[RuleSelector, ...]"
    expanded: bool = False
    """The rules name what exists now: they do not select devices that appear later."""
    missing: tuple[str, ...] = ()
    """Why names match no device, with --allow-missing."""

    @property
    def note(self) -> str:
        """Return what to print about devices that appear later; empty if they are selected, too."""
        if not self.expanded:
            return ""
        which = "this rule" if len(self.selectors) == 1 else "these rules"
        return f"devices that appear later are not covered by {which}"


def selection_kinds(args: SelectionArgs) -> "tuple[Kind[Any], ...]":
    """Return the kinds that a selection needs in addition to slices: load them and require them."""

    kinds: list[Kind[Any]] = [CLASSES] if args.classes else []
    return (*kinds, NODES) if args.labels else tuple(kinds)


async def select_devices(
    session: Session, snapshot: "Snapshot", args: SelectionArgs
) -> DeviceSelection:
    """Return the devices that a command line selects; raise `CommandError` if any part fails."""
    criteria = await rule_criteria(session, snapshot, args)
    reason = str(getattr(session.options, "reason", "") or "")
    return resolve(snapshot, args, criteria, files=current_files(), reason=reason)


async def rule_criteria(
    session: Session, snapshot: "Snapshot", args: SelectionArgs
) -> frozenset[str]:
    """Return which of `ALL_FIELDS` the rules of the server have."""

    if not (args.classes or args.expressions):
        return frozenset()
    if session.connection is None:
        return ALL_FIELDS if snapshot.control_plane.scheduler == "Sully" else frozenset()
    return ALL_FIELDS & offer(await probe(session.transport)).selector_fields


def resolve(
    snapshot: "Snapshot",
    args: SelectionArgs,
    criteria: Collection[str] = ALL_FIELDS,
    *,
    files: Sequence[str] = (),
    reason: str = "",
) -> DeviceSelection:
    """Return the devices that are selected, and the selectors of rules with these criteria.

    `files` are those of the current folder, to recognize a `*` that the shell has expanded.
    """
    from sully.cli.selection.device_names import DeviceNames

    names = DeviceNames(snapshot)
    _refuse_expanded_star(args, files)
    for name in args.classes:
        if not args.allow_missing:
            check_class(snapshot, name)
    matches, missing = _named(names, args, files, reason)
    selected = tuple(dict.fromkeys(device for named in matches for device in named.devices))
    devices = tuple(sorted(_filtered(names, args, selected)))
    if not devices and not args.allow_missing:
        raise CommandError(_nothing_selected(names, args, len(selected)))
    selectors, expanded = _selectors(names, args, matches, devices, criteria)
    if not selectors:
        # The rules of the server can only name devices, and there is none to name.
        raise CommandError(_nothing_selected(names, args, len(selected)))
    return DeviceSelection(devices, selectors, expanded, missing)


# -- names ----------------------------------------------------------------------------------------


def _named(
    names: "DeviceNames", args: SelectionArgs, files: Sequence[str], reason: str
) -> "tuple[list[NamedDevices], tuple[str, ...]]":
    from sully.cli.selection.device_names import MissingNameError

    matches, missing, problems = [], [], []
    for text in args.names or ("*",):
        try:
            matches.append(names.find(text, args.kind))
        except MissingNameError as error:
            resolved = _not_yet(text, args)
            if resolved is None:
                problems.append((text, str(error)))
            else:
                matches.append(resolved)
                missing.append(str(error))
    if problems:
        raise CommandError(_missing(args, problems, files, reason))
    return matches, tuple(missing)


def _not_yet(text: str, args: SelectionArgs) -> "NamedDevices | None":
    """Return the rule for a device that does not exist; None if that is not allowed."""
    from sully.cli.selection.device_names import NamedDevices, is_plain, plain_selector

    if not args.allow_missing or args.kind != DEVICE:
        return None
    pattern = parse_pattern(text)
    if not args.names:
        return NamedDevices((), (plain_selector(pattern),))
    # A short form of what does not exist could mean anything.
    full = text.count("/") > 1 and is_plain(pattern)
    return NamedDevices((), (plain_selector(pattern),)) if full else None


def _missing(
    args: SelectionArgs, problems: Sequence[tuple[str, str]], files: Sequence[str], reason: str
) -> str:
    lines = [problem for _, problem in problems[:_MOST]]
    if len(problems) > _MOST:
        lines.append(f"and {len(problems) - _MOST} more")
    hints = []
    globs = [text for text, _ in problems if args.kind == NODE and is_glob(text)]
    if globs:
        patterns = " ".join(f"'*/{text}'" for text in globs[:_MOST])
        hints.append(f"for devices in pools that are called like nodes: device {patterns}")
        hints.append("for nodes with labels: device -l LABELS")
    elif any(text in files for text, _ in problems):
        hints.append(f"{EXPANDED}; quote patterns: '*'")
    elif reason and " " not in reason:
        hints.append(f"quote a reason of several words: --reason '{reason} ...'")
    if args.allow_missing:
        hints.append("with --allow-missing, use DRIVER/POOL/DEVICE")
    hints.append("list devices with 'sully devices'")
    return "\n".join([*lines, *(f"  {hint}" for hint in hints)])


def _refuse_expanded_star(args: SelectionArgs, files: Sequence[str]) -> None:
    """Refuse all files of the current folder, in order: the shell may have expanded a `*`."""
    if len(args.names) > 1 and list(args.names) == sorted(files):
        named = " ".join(quote(f"{args.kind}/{name}") for name in args.names[:_MOST])
        raise CommandError(
            "the names are all files of the current folder, as if the shell had expanded a *\n"
            f"  {'for all devices: device' if args.kind == NODE else 'quote patterns:'} '*'\n"
            f"  if you typed the names: {named}{' ...' if len(args.names) > _MOST else ''}",
            code=2,
        )


# -- other criteria -------------------------------------------------------------------------------


def _filtered(
    names: "DeviceNames", args: SelectionArgs, devices: "Sequence[DeviceId]"
) -> "Iterator[DeviceId]":
    """Yield the devices that match all criteria other than names."""
    _refuse_unknown(devices, "--uuid", {x: x.lower() for x in args.uuids}, names.uuids)
    addresses = [_pci(text) for text in args.pci]
    by_text = dict(zip(args.pci, addresses, strict=True))
    _refuse_unknown(devices, "--pci", by_text, names.pci_addresses)
    labelled = _labelled_nodes(names, args.labels) if args.labels else None
    uuids = {text.lower() for text in args.uuids}
    for device in devices:
        if (
            (labelled is None or names.nodes[device] in labelled)
            and (not uuids or names.uuids(device) & uuids)
            and (not addresses or names.pci_addresses(device) & set(addresses))
            and _in_classes(names, args, device)
            and _matches_expressions(names, args, device)
        ):
            yield device


def _pci(text: str) -> str:
    from sully.domain.devices.identity import normal_pci

    return normal_pci(text)


def _refuse_unknown(
    devices: "Sequence[DeviceId]",
    flag: str,
    values: Mapping[str, str],
    values_of: "Callable[[DeviceId], frozenset[str]]",
) -> None:
    """Refuse an identifier that no device has; `values` maps input to its normal form."""
    if not values:
        return

    known = {value for device in devices for value in values_of(device)}
    for text, value in values.items():
        if value in known:
            continue
        if not known:
            problem = "no device publishes such an attribute"
        else:
            problem = f"no device has it{did_you_mean(value, sorted(known))}"
        raise CommandError(
            f"{flag} {text}: {problem}\n  list attributes with 'sully devices -o wide'"
        )


def _labelled_nodes(names: "DeviceNames", labels: str) -> set[str]:

    selector = read_selector(labels)
    nodes = names.snapshot.of(NODES).values()
    labelled = {node.metadata.name for node in nodes if selector.matches(node.metadata.labels)}
    if not labelled:
        raise CommandError(
            f"-l {labels}: no node has these labels\n"
            "  list them with 'kubectl get nodes --show-labels'"
        )
    return labelled


def _in_classes(names: "DeviceNames", args: SelectionArgs, device: "DeviceId") -> bool:

    if not args.classes:
        return True
    # A class that cannot be evaluated on a device does not select it for claims, either.
    return any(
        _choice(names, DeviceTaintSelector(device_class_name=name), device).selected
        for name in args.classes
    )


def _matches_expressions(names: "DeviceNames", args: SelectionArgs, device: "DeviceId") -> bool:

    for text in args.expressions:
        selector = DeviceSelector(cel=CELDeviceSelector(expression=text))
        choice = _choice(names, DeviceTaintSelector(selectors=(selector,)), device)
        if not choice.compiles:
            raise CommandError(f"--cel {text}: {choice.cause}", code=2)
        if choice.problem:
            raise CommandError(
                f"--cel {text}: on device {device}: {choice.cause or choice.problem}"
                f"{_attribute_hint(names, device, choice.missing_key)}"
            )
        if not choice.selected:
            return False
    return True


def _attribute_hint(names: "DeviceNames", device: "DeviceId", missing: str) -> str:
    """Return what to do about an attribute that a device does not have."""

    effective = names.snapshot.inventory.device(device)
    known = sorted({name.rpartition("/")[2] for name in effective.attributes} if effective else ())
    close = did_you_mean(missing.strip("'\""), known) if missing else ""
    drivers = {other.driver for other in names.nodes}
    lines = [close, f"  attributes of this device: {', '.join(known) or 'none'}"]
    if len(drivers) > 1 and not close:
        lines.append(
            "  devices of other drivers have other attributes; name the driver:"
            f" sully ... '{device.driver}', or test for the attribute first"
        )
    return "\n".join(lines)


def _choice(names: "DeviceNames", selector: Any, device: "DeviceId") -> Any:

    inventory = names.snapshot.inventory
    effective = inventory.device(device)
    if effective is None:
        return NO
    return choose_by_content(selector, effective.content, inventory.class_)


def _nothing_selected(names: "DeviceNames", args: SelectionArgs, candidates: int) -> str:
    if not names.nodes:
        return "no devices found: no driver has published any"
    text = f"no devices found among {candidates}: {args.describe()}"
    for name in args.classes:
        if problem := _class_problem(names, name):
            text += f"\n  {problem}"
    return f"{text}\n  list devices with 'sully devices -o wide'"


def _class_problem(names: "DeviceNames", name: str) -> str:

    selector = DeviceTaintSelector(device_class_name=name)
    problems = (_choice(names, selector, device).problem for device in names.nodes)
    return next(filter(None, problems), "")


# -- rules ----------------------------------------------------------------------------------------


def _selectors(
    names: "DeviceNames",
    args: SelectionArgs,
    matches: "Sequence[NamedDevices]",
    devices: "Sequence[DeviceId]",
    criteria: Collection[str],
) -> "tuple[tuple[RuleSelector, ...], bool]":
    """Return the selectors of rules, and whether devices that appear later are left out."""
    by_name = tuple(dict.fromkeys(selector for named in matches for selector in named.selectors))
    globbed = any(named.globbed for named in matches)
    if args.is_only_names:
        return by_name, globbed
    needed = {CLASS_FIELD} if args.classes else set()
    needed |= {CEL_FIELD} if args.expressions else set()
    if needed <= set(criteria) and not (args.labels or args.uuids or args.pci):
        native = tuple(
            replace(selector, device_class=name, expressions=args.expressions)
            for selector, name in product(by_name, args.classes or ("",))
        )
        return native, globbed
    by_identity = bool(args.uuids or args.pci)
    return names.selectors(devices, whole_pools=not by_identity), not by_identity
