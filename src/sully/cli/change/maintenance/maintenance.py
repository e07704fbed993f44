"""`sully maintenance`: plan work on devices, follow it, pause, cancel and approve it."""

from typing import TYPE_CHECKING, Any

import click

from sully.cli.change.maintenance.args import build_maintenance, create_options
from sully.cli.change.output import is_dry_run, print_objects, report, text_stream
from sully.cli.change.taint.args import dry_run_option, yes_option
from sully.cli.client.options import (
    NAMES,
    OUTPUTS,
    TABLES,
    client_options,
    no_headers_option,
    server_flags,
)
from sully.cli.client.session import Session, call
from sully.cli.command import ActionOrName, CommandError, Options, action_and_names, command
from sully.cli.names import SUBJECTS, completer
from sully.cli.output.text import did_you_mean
from sully.cli.selection.named_objects import (
    Printer,
    annotate,
    find_objects,
    full_name,
    list_objects,
    match_names,
)
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sully.api.sully.types import DeviceMaintenance
    from sully.client.transport import Key
    from sully.planning.maintenances import MaintenanceForecast
    from sully.views.snapshot.snapshot import Snapshot

_NAMES = completer(SUBJECTS["maintenance"])
_ACTIONS = ("list", "create", "pause", "resume", "cancel", "approve", "retry")
_HELP = """\
List DeviceMaintenances, create one, or pause, resume, cancel or approve one.

create shows first which devices are closed (tainted sully.dev/maintenance:NoSchedule) in which
order, and what happens to their pods. It has to be confirmed if pods or many devices are affected;
--yes skips that. A selector that matches no device is an error. No pod is evicted before --start.
Pods that are scheduled to the devices after the answer and before they are closed are evicted, too.

pause begins no further step and evicts no further pods once the controller sees it; Jobs that are
running continue. Closed devices stay closed, except that at --end those whose work has not begun
are returned to service. resume continues. cancel returns all devices to service immediately, also
those whose work is in progress, deletes their Jobs, and cannot be undone. If someone is working on
a device, use pause. approve confirms that the work on a unit is done, or, with --proof, that the
unit works. retry repeats the step that failed.

UNIT is a node, a device DRIVER/POOL/DEVICE or the end of it, or a glob of one of these. The columns
DONE and CLOSED count units: nodes with --by Node, else devices. Blocked in the column STATE means
that a unit has pods without a controller or of DaemonSets, which are evicted only with --force.
'sully explain maintenance NAME' lists the units that are closed, and why they wait.
"""
_EXAMPLES = """\
# List all maintenances
sully maintenance

# Update firmware on Saturday, node by node; close each node two hours before
sully maintenance create firmware-4.2 --class a100 --by Node \\
  --start 2026-01-03T02:00:00Z --for 4h --close-before 2h \\
  --max-unavailable 10% --approval

# Preview it
sully maintenance create firmware-4.2 --class a100 --start 8h --dry-run

# Approve a node: the work on it is done
sully maintenance approve firmware-4.2 node-7

# Pause it
sully maintenance pause firmware-4.2

# Cancel it: remove all its taints
sully maintenance cancel firmware-4.2
"""


@command(
    "maintenance",
    usage="[NAME] [flags]\nlist [NAME...] [flags]\ncreate NAME --start TIME [flags]\n"
    "pause|resume|cancel NAME... [flags]\napprove|retry NAME UNIT... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("action", default="list", type=ActionOrName(_ACTIONS), metavar="[ACTION]")
@click.argument("args", nargs=-1, metavar="[NAME]...", shell_complete=_NAMES)
@create_options
@dry_run_option
@yes_option
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
@no_headers_option
def maintenance(options: Options) -> int:
    options.action, options.args = action_and_names(options.action, options.args, _ACTIONS)
    work = {"list": _show, "create": _create, "approve": _approve, "retry": _approve}
    return call(options, "maintenance", work.get(options.action, _switch))


async def _show(session: Session) -> int:
    from sully.cli.change.maintenance.printer import COLUMNS, document, row
    from sully.views.kinds import MAINTENANCES

    printer = Printer(
        MAINTENANCES,
        "maintenances",
        COLUMNS,
        lambda maintenance, snapshot: row(maintenance, snapshot.taken),
        lambda maintenance, _: document(maintenance),
    )
    return await list_objects(session, printer)


def _key(name: str) -> "Key":
    from sully.client.transport import Key

    return Key("", name)


# -- creating -------------------------------------------------------------------------------------


async def _create(session: Session) -> int:
    from sully.cli.change.plan.maintenances import maintenance_snapshot, show_forecast
    from sully.cli.change.plan.manifests import Manifest
    from sully.cli.change.plan.proposals import proposed
    from sully.planning.dryrun.changes import Put
    from sully.planning.maintenances import forecast
    from sully.views.kinds import MAINTENANCES

    options = session.options
    if len(options.args) != 1:
        raise CommandError("create takes one argument: NAME", code=2)
    body = build_maintenance(options, options.args[0], session.clock.now())
    options.snapshot = ()
    snapshot = await maintenance_snapshot(session)
    if snapshot.get(MAINTENANCES, _key(options.args[0])) is not None:
        raise CommandError(f'devicemaintenance "{options.args[0]}" already exists')
    (put,) = await proposed(session, snapshot, [Manifest(body)])
    if not isinstance(put, Put):
        raise TypeError("a new object is put")
    planned = forecast(put.obj, snapshot)
    if not planned.units:
        raise CommandError(
            "the selector matches no device; nothing changed\n  list devices with 'sully devices'"
        )
    output, options.output = options.output, "table"
    code = show_forecast(session, put.obj, snapshot) if output in TABLES else 0
    options.output = output
    if is_dry_run(session):
        print_objects(session, [body])
        return code
    if not await _confirmed_with_later_pods(session, planned, snapshot):
        report(session, "Nothing changed.")
        return 1
    plain = MAINTENANCES.read_as(dict)
    print_objects(session, [await session.transport.create(plain, body)])
    name = full_name(MAINTENANCES, options.args[0])
    undo = f"sully maintenance cancel {options.args[0]}{server_flags(options)}"
    report(session, f"{name} created\n  to undo:  {undo}")
    return 0


async def _confirmed_with_later_pods(
    session: Session, planned: "MaintenanceForecast", snapshot: "Snapshot"
) -> bool:
    """Ask, and ask again while more pods use the devices than were confirmed."""
    from sully.cli.change.later_pods import later, later_text, refreshed
    from sully.planning.maintenances import forecast

    while await _confirmed(session, planned, snapshot):
        interactive = not session.options.yes
        newer = await refreshed(session, snapshot, interactive=interactive)
        if newer is None:
            return True
        before, snapshot = _pods(planned), newer
        planned = forecast(planned.maintenance, snapshot)
        pods = later(before, _pods(planned))
        if pods:
            report(session, later_text(pods))
        if not pods or not interactive:
            return True
    return False


def _pods(planned: "MaintenanceForecast") -> dict[str, str]:
    return {pod: pod for unit in planned.units for pod in unit.pods}


async def _confirmed(
    session: Session, planned: "MaintenanceForecast", snapshot: "Snapshot"
) -> bool:
    """Ask if pods may be evicted, or the maintenance is for many devices."""
    from sully.cli.change.confirm import confirm_risk
    from sully.cli.change.large_changes import large_change_reasons
    from sully.domain.devices.pools import device_id

    large = large_change_reasons(snapshot, frozenset(map(device_id, planned.devices)))
    pods = sum(len(unit.pods) for unit in planned.units)
    if session.options.yes or not (pods or large):
        return True
    risk = f"this changes {large[0]}" if large else f"this may evict {number_of(pods, 'pod')}"
    evicts = f" and evict {number_of(pods, 'pod')} during it" if pods else ""
    what = number_of(len(planned.devices), "device")
    action = f"Create maintenance {session.options.args[0]} of {what}{evicts}"
    return await confirm_risk(action, risk, text_stream(session))


# -- deciding -------------------------------------------------------------------------------------


_CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "pause": ({"paused": True}, "paused"),
    "resume": ({"paused": None}, "resumed"),
    "cancel": ({"cancelled": True}, "cancelled"),
}
"""The change of the spec, and what is printed."""


async def _switch(session: Session) -> int:
    """Pause, resume or cancel."""
    from sully.views.kinds import MAINTENANCES

    action = session.options.action
    if not session.options.args:
        raise CommandError("missing argument: NAME", code=2)
    change, done = _CHANGES[action]
    maintenances = await _maintenances(session, session.options.args)
    for maintenance in maintenances:
        _refuse_if_over(maintenance, action)
    for maintenance in maintenances:
        name = maintenance.metadata.name
        if action == "resume" and not maintenance.spec.paused:
            report(session, f"{full_name(MAINTENANCES, name)} is not paused")
            continue
        await session.transport.patch(MAINTENANCES, _key(name), {"spec": change})
        report(session, f"{full_name(MAINTENANCES, name)} {done}")
    return 0


def _refuse_if_over(maintenance: "DeviceMaintenance", action: str) -> None:
    """Fail if the maintenance has finished, so that a change of it would have no effect."""
    from sully.domain.maintenance.decisions import CANCELLED, COMPLETED, FINAL

    phase = maintenance.status.phase
    if maintenance.spec.cancelled and phase not in FINAL:
        # Its controller has not seen it yet.
        phase = CANCELLED
    # Cancelling returns also those devices to service whose work failed.
    if phase in (FINAL if action != "cancel" else (COMPLETED,)):
        name, done = maintenance.metadata.name, _CHANGES[action][1]
        raise CommandError(f'devicemaintenance "{name}" is {phase}: it cannot be {done}')


async def _approve(session: Session) -> int:
    """Approve what units wait for, by an annotation of one of their rules."""
    from sully.domain.devices.device_rules import device_of
    from sully.domain.maintenance.rules import APPROVED, maintenance_name
    from sully.domain.maintenance.steps import FAILED
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

    name, *patterns = session.options.args or ("",)
    if not name or not patterns:
        raise CommandError("missing argument: NAME and UNIT", code=2)
    (maintenance,) = await _maintenances(session, [name])
    retries = session.options.action == "retry"
    waiting = {
        unit.name: unit
        for unit in maintenance.status.units
        if unit.approval and (unit.phase == FAILED) == retries
    }
    selected = sorted({unit for text in patterns for unit in _selected(waiting, text, session)})
    listed = await list_all(session.transport, RULES)
    rules = {device_of(rule): rule for rule in listed if maintenance_name(rule) == name}
    for unit in selected:
        rule = next((rules[one] for one in waiting[unit].devices if one in rules), None)
        if rule is None:
            text = f'devicemaintenance "{name}" has no rule for "{unit}" yet'
            raise CommandError(f"{text}\n  its controller creates one: try again")
        annotations = {APPROVED: waiting[unit].approval}
        await annotate(session, RULES, rule.metadata.name, annotations)
        report(session, f"{unit} {'is tried again' if retries else 'approved'}")
    return 0


def _selected(units: "Iterable[str]", text: str, session: Session) -> list[str]:

    selected = match_names(units, text)
    if not selected:
        name = session.options.args[0]
        what = "failed" if session.options.action == "retry" else "waits for approval"
        raise CommandError(
            f'devicemaintenance "{name}" has no unit "{text}" that {what}'
            f"{did_you_mean(text, units)}\n  list its units with 'sully explain maintenance {name}'"
        )
    return selected


async def _maintenances(session: Session, names: "Sequence[str]") -> "list[DeviceMaintenance]":
    from sully.views.kinds import MAINTENANCES

    return await find_objects(session, MAINTENANCES, names, listed_by="sully maintenance")
