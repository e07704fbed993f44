"""`sully signal`: report a fault of a device, for scripts and other monitors."""

import sys
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from sully.cli.change.drain.args import USAGE, selection_arguments
from sully.cli.change.taint.args import yes_option
from sully.cli.client.options import (
    connection_options,
    duration_option,
    request_timeout_option,
)
from sully.cli.client.session import Session, call
from sully.cli.command import USAGE_ERROR, Choice, CommandError, Options, command
from sully.cli.selection.args import (
    NAMES_HELP,
    read_selection,
    selection_options,
    split_kind,
)

if TYPE_CHECKING:
    from sully.domain.devices.pools import DeviceId
    from sully.domain.health.signals import Signal
    from sully.domain.health.targets import Target
    from sully.views.snapshot.snapshot import Snapshot

_HELP = f"""\
Report a fault of devices, or with --clear that it is over.

A signal is recorded in the DeviceHealth NODE.signals, where policies find it as they find the
faults that agents measure. It taints no device by itself. To send it again changes only its time.
A fault of many devices, such as all devices of a class, has to be confirmed; --yes skips that.

{NAMES_HELP}"""
_EXAMPLES = """\
# A fan failed
sully signal device node-7/gpu-3 --key fan --severity Critical \\
    --message 'fan 2 stands still'

# The same by UUID, until it is reported again or for an hour
sully signal device --uuid GPU-5a1c2f3d --key fan --severity Warning --for 1h

# It is repaired
sully signal device node-7/gpu-3 --key fan --clear
"""


@command("signal", usage=USAGE, help=_HELP, examples=_EXAMPLES)
@selection_arguments
@selection_options
@click.option("--key", default="", metavar="KEY", help="What it is, for example fan. Required.")
@click.option("--value", default="", metavar="VALUE", help="Which one it is, for example 2.")
@click.option(
    "--severity",
    default="Warning",
    type=Choice(("Info", "Warning", "Critical")),
    metavar="SEVERITY",
    show_default=True,
    help="How bad it is: Info, Warning or Critical.",
)
@click.option("--message", default="", metavar="TEXT", help="What happened, for people to read.")
@duration_option("--for", "duration", help="How long it counts, unless it is reported again.")
@click.option("--clear", is_flag=True, help="It is over.")
@yes_option
@connection_options
@request_timeout_option
def signal(options: Options) -> int:
    if not options.key:
        raise CommandError("required flag --key not set", USAGE_ERROR)
    if options.clear and options.duration is not None:
        raise CommandError("--clear and --for cannot be used together", USAGE_ERROR)
    return call(options, "signal", _send)


async def _send(session: Session) -> int:
    from collections import defaultdict

    from sully.cli.client.snapshots import take_snapshot
    from sully.cli.selection.device_selection import resolve, selection_kinds
    from sully.domain.health.signals import REFUSED
    from sully.domain.health.targets import target_of
    from sully.monitor.signals import SignalRecorder, identities
    from sully.views.kinds import CLASSES, PATCHES, SLICES

    args = read_selection(session.options, *split_kind(session.options.arguments))
    kinds = (SLICES, *selection_kinds(args))
    # Without classes it is not known which share of a class has the fault.
    snapshot = await take_snapshot(session, (*kinds, CLASSES, PATCHES), needed=kinds)
    selected = set(resolve(snapshot, args).devices)
    if not await _confirmed(session, snapshot, selected):
        print("Nothing changed.")
        return 1
    signal_ = _signal(session)
    reports: dict[str, list[tuple[Target, Signal]]] = defaultdict(list)
    names: dict[str, list[str]] = defaultdict(list)
    for device in identities(snapshot):
        if device.id in selected:
            reports[device.node].append((target_of(device), signal_))
            names[device.node].append(str(device.id))
    recorder, refused = SignalRecorder(session.transport, clock=session.clock), False
    for node, pairs in reports.items():
        for name, result in zip(names[node], await recorder.write(node, pairs), strict=True):
            print(f"{name} {session.options.key}: {_TEXTS.get(result, result)}")
            refused = refused or result in REFUSED
        if session.options.clear:
            await _print_remaining(session, node, names[node], [target for target, _ in pairs])
    return int(refused)


async def _print_remaining(
    session: Session, node: str, names: Sequence[str], targets: "Sequence[Target]"
) -> None:
    """Print which faults devices still have: a key may be misspelled, or its value left out."""
    from sully.api.sully.health import report_name
    from sully.client.transport import Key
    from sully.domain.health.signals import REPORTER, is_over
    from sully.views.kinds import DEVICE_HEALTH

    report = await session.transport.get(DEVICE_HEALTH, Key("", report_name(node, REPORTER)))
    for name, target in zip(names, targets, strict=True):
        entries = (entry for entry in report.spec.devices if target.is_entry(entry))
        left = [
            f"--key {reason.key}" + (f" --value {reason.value}" if reason.value else "")
            for entry in entries
            for reason in entry.reasons
            if not is_over(reason, session.clock.now())
        ]
        if left:
            print(f"note: {name} still has {', '.join(left)}")


async def _confirmed(
    session: Session, snapshot: "Snapshot", selected: "Collection[DeviceId]"
) -> bool:
    """Ask before a fault of many devices is reported: policies may taint all of them."""
    from sully.cli.change.confirm import confirm_risk
    from sully.cli.change.large_changes import large_change_reasons

    if session.options.yes or session.options.clear:
        return True
    large = large_change_reasons(snapshot, selected)
    if not large:
        return True
    action, risk = f"Report a fault of {large[0]}", f"this reports a fault of {large[0]}"
    return await confirm_risk(action, risk, sys.stdout)


_TEXTS = {
    "Recorded": "recorded",
    "Cleared": "cleared",
    "Duplicate": "already known",
    "Late": "ignored, a later signal is known",
    "ReportFull": "not recorded, the report is full",
}


def _signal(session: Session) -> "Signal":
    from sully.api.core.checks import formatted, label_key
    from sully.domain.health.signals import Signal
    from sully.machinery.fields import Path
    from sully.machinery.formats.names import label_value_problems

    options, now = session.options, session.clock.now()
    problems = (
        *label_key(options.key, Path("--key")),
        *formatted(options.value, label_value_problems, Path("--value")),
    )
    if problems:
        raise CommandError(str(problems[0]), USAGE_ERROR)
    for_ = options.duration
    return Signal(
        key=options.key,
        value=options.value,
        severity=options.severity,
        message=options.message,
        active=not options.clear,
        since=now,
        time=now,
        expires=None if for_ is None else now + timedelta(seconds=for_),
    )
