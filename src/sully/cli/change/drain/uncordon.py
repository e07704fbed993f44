"""`sully uncordon`: allow scheduling on devices again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sully.cli.change.drain.args import USAGE, parse_selection, selection_arguments
from sully.cli.change.drain.cordons import cordon_rules_of, devices_by_rule, other_taints, take
from sully.cli.change.output import (
    deleted_objects,
    is_dry_run,
    print_objects,
    report,
    text_stream,
)
from sully.cli.change.taint.args import dry_run_option, yes_option
from sully.cli.client.options import NAMES, OUTPUTS, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import CommandError, Options, command
from sully.cli.selection.args import NAMES_HELP, SelectionArgs, selection_options
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.cli.selection.device_selection import DeviceSelection
    from sully.domain.devices.pools import DeviceId
    from sully.views.snapshot.snapshot import Snapshot

_HELP = f"""\
Uncordon devices: undo 'sully cordon' and 'sully drain'.

The DeviceTaintRules that these commands created for the same selection are deleted, and no others.
Those that another command created for a part of it, such as one of several nodes, are listed and
deleted after confirmation; --yes skips the confirmation. A rule that also cordons other devices is
replaced by rules for those, after confirmation, too: devices that appear later are then not
cordoned. Further taints that prevent scheduling are listed, also those of devices that were
cordoned by another command. Evicted pods are not moved back.

With -o json, yaml or name, only the deleted rules are written to standard output, and everything
else to standard error.

{NAMES_HELP}
"""
_EXAMPLES = """\
# Allow scheduling on a device again
sully uncordon device node-7/gpu-3

# Allow scheduling on all devices of a node, or of a class
sully uncordon node node-7
sully uncordon class a100
"""


@command("uncordon", usage=USAGE, help=_HELP, examples=_EXAMPLES)
@selection_arguments
@selection_options
@dry_run_option
@yes_option
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
def uncordon(options: Options) -> int:
    return call(options, "uncordon", _run)


async def _run(session: Session) -> int:
    from sully.cli.change.taint.writes import delete_rules
    from sully.cli.selection.device_selection import select_devices
    from sully.client.transport import Key
    from sully.planning.dryrun.changes import Remove
    from sully.views.kinds import RULES

    snapshot = await take(session)
    args = parse_selection(session.options)
    devices: frozenset[DeviceId] = frozenset()
    try:
        selection = await select_devices(session, snapshot, args)
    except CommandError:
        # The devices may be gone, and their rules still there.
        names = _rules_named(snapshot, args)
        if not names:
            raise
    else:
        devices = frozenset(selection.devices)
        names = _rules_of(snapshot, selection)
        if wider := _wider(snapshot, names, selection):
            code = await _split(session, snapshot, devices, names=names, wider=wider)
            if code == 0:
                _warn_of_others(session, snapshot, devices, names)
            return code
        if names and not await _confirmed(session, snapshot, selection, names):
            return 1
    deletions = [Remove(RULES, Key("", name)) for name in names]
    deleted = await deleted_objects(session, deletions)
    if is_dry_run(session):
        for name in names:
            report(session, f"devicetaintrule {name} would be deleted")
    else:
        await delete_rules(session, deletions)
    print_objects(session, deleted)
    _report_devices(session, snapshot, devices, names)
    _warn_of_others(session, snapshot, devices, names)
    return 0


async def _confirmed(
    session: Session, snapshot: "Snapshot", selection: "DeviceSelection", names: Sequence[str]
) -> bool:
    """Ask before rules are deleted that were created for a part of the selection.

    A user who uncordons a node twice, or several nodes of which one was cordoned by itself, would
    otherwise give back a device that is broken.
    """
    from sully.cli.change.confirm import confirm_risk

    args = parse_selection(session.options)
    others = _of_other_commands(snapshot, selection, names)
    if not others:
        return True
    by_rule = devices_by_rule(snapshot)
    devices = set().union(*(by_rule.get(name, ()) for name in others))
    own = [name for name in names if name not in others]
    lines = other_taints(snapshot, frozenset(selection.devices) & devices, own)
    session.warn("warning: other commands cordoned devices of this selection:")
    session.warn("\n".join(f"  {line}" for line in lines))
    if session.options.yes or is_dry_run(session):
        return True
    what = args.describe_some(len(selection.devices))
    action = f"Delete the rules of other commands and uncordon {what}"
    risk = "this deletes the rules of other commands"
    if await confirm_risk(action, risk, text_stream(session)):
        return True
    report(session, "Nothing changed.")
    return False


def _of_other_commands(
    snapshot: "Snapshot", selection: "DeviceSelection", names: Sequence[str]
) -> list[str]:
    """Return the rules that another command created for a part of the selection only.

    A command for several nodes shares the rules of single nodes with the command for these.
    """
    from sully.domain.devices.rules import TOGETHER
    from sully.domain.drain.rules import belongs_to, group_name

    rules = cordon_rules_of(snapshot)
    own = {name for name in names if belongs_to(rules[name], selection.selectors)}
    if not own:
        return list(names)
    groups: dict[str, set[str]] = {}
    for name, rule in rules.items():
        groups.setdefault(rule.metadata.labels.get(TOGETHER, ""), set()).add(name)
    # The rest of a wider cordon does not count: its rules are elsewhere, or are all that is named.
    parts = [
        group
        for label, group in groups.items()
        if label not in ("", group_name(selection.selectors)) and group < own
    ]
    return sorted(set().union(*parts))


def _warn_of_others(
    session: Session,
    snapshot: "Snapshot",
    devices: "frozenset[DeviceId]",
    names: Sequence[str],
) -> None:
    """Warn of taints that remain on the devices."""
    from sully.domain.drain.rules import KEY

    remaining = other_taints(snapshot, devices, names)
    if remaining:
        session.warn("warning: other taints still prevent scheduling:")
        session.warn("\n".join(f"  {line}" for line in remaining))
        if names and any(KEY in line for line in remaining):
            session.warn(
                "  to uncordon also what another command cordoned, run this command again; it asks"
                " for confirmation"
            )


def _report_devices(
    session: Session,
    snapshot: "Snapshot",
    devices: "frozenset[DeviceId]",
    names: Sequence[str],
) -> None:
    by_rule = devices_by_rule(snapshot)
    others = [by_rule.get(name, set()) for name in cordon_rules_of(snapshot) if name not in names]
    freed = {device for name in names for device in by_rule.get(name, ())}.difference(*others)
    if not names:
        are = "is" if len(devices) == 1 else "are"
        report(session, f"{number_of(len(devices), 'device')} {are} not cordoned.")
        return
    would = "would be " if is_dry_run(session) else ""
    report(session, f"{number_of(len(freed), 'device')} {would}uncordoned.")


def _rules_of(snapshot: "Snapshot", selection: "DeviceSelection") -> list[str]:
    """Return the rules of a cordon with the same selection, otherwise all within it.

    A device that was cordoned by itself stays cordoned when its node is uncordoned.
    """
    from sully.domain.drain.rules import belongs_to

    rules = cordon_rules_of(snapshot)
    own = sorted(name for name in rules if belongs_to(rules[name], selection.selectors))
    return own or _rules_within(snapshot, frozenset(selection.devices))


def _rules_within(snapshot: "Snapshot", devices: "frozenset[DeviceId]") -> list[str]:
    """Return the rules that cordon these devices."""
    by_rule = devices_by_rule(snapshot)
    return [
        name for name in sorted(cordon_rules_of(snapshot)) if by_rule.get(name, set()) & devices
    ]


def _wider(snapshot: "Snapshot", names: Sequence[str], selection: "DeviceSelection") -> list[str]:
    """Return the rules that were created for another selection, and also cordon other devices."""
    from sully.domain.drain.rules import rule_name

    own, devices = set(map(rule_name, selection.selectors)), frozenset(selection.devices)
    by_rule = devices_by_rule(snapshot)
    return [name for name in names if name not in own and by_rule.get(name, set()) - devices]


async def _split(
    session: Session,
    snapshot: "Snapshot",
    devices: "frozenset[DeviceId]",
    *,
    names: Sequence[str],
    wider: Sequence[str],
) -> int:
    """Uncordon some devices of rules; the others stay cordoned."""
    from sully.cli.change.taint.splitting import replace_rules, split
    from sully.domain.devices.pools import DeviceId

    rules = cordon_rules_of(snapshot)

    def selects(driver: str, pool: str, device: str) -> bool:
        return DeviceId(driver, pool, device) in devices

    bodies = {name: split(snapshot, rules[name], selects) for name in wider}
    narrow = [name for name in names if name not in wider]
    return await replace_rules(session, snapshot, narrow, bodies)


def _rules_named(snapshot: "Snapshot", args: SelectionArgs) -> Sequence[str]:
    """Return the rules that cordon what these names stood for, though no such device exists."""
    if not args.is_only_names:
        return ()
    by_rule = devices_by_rule(snapshot)
    names = []
    for name, rule in sorted(cordon_rules_of(snapshot).items()):
        selector = rule.spec.device_selector
        if selector is None or by_rule.get(name):
            continue
        pool, device = selector.pool or "", selector.device or ""
        forms = {pool, f"{pool}/{device}", f"{selector.driver}/{pool}/{device}"}
        if forms & set(args.names):
            names.append(name)
    return names
