"""`sully policies`: what device policies do, and what they wait for from people."""

import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import (
    NAMES,
    OUTPUTS,
    TABLES,
    client_options,
    no_headers_option,
    snapshot_option,
)
from sully.cli.client.session import Session, call
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import Choice, CommandError, Options, command
from sully.cli.names import SUBJECTS, names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sully.api.sully.types import DeviceTaintPolicy
    from sully.client.transport import Key

_ACTIONS = ("list", "approve", "clear", "resume")
_HELP = """\
List DeviceTaintPolicies and what they do, or decide what they wait for.

approve lets a policy of the mode RequireApproval taint a device. clear declares a device healthy:
it removes the taint of a recovered device whose policy requires a manual proof, or that is
flapping. A device that is still faulty keeps its taint. resume ends a storm: the policy continues.

DEVICE is DRIVER/POOL/DEVICE or the end of it, or a glob of one of these. NEXT is when the policy
changes a taint next, if nothing else happens. 'sully explain policy NAME' lists the devices.
"""
_EXAMPLES = """\
# List all policies
sully policies

# Approve the taint of a device, and of all devices of a node
sully policies approve gpu-faults gpu.example.com/node-7/gpu-3
sully policies approve gpu-faults 'node-7/*'

# Declare a repaired device healthy
sully policies clear gpu-faults node-7/gpu-3

# Continue after a storm of faults
sully policies resume gpu-faults
"""


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return names(SUBJECTS["policy"], incomplete, ctx.params)


@command(
    "policies",
    usage="[list] [NAME...] [flags]\napprove|clear NAME DEVICE... [flags]\nresume NAME... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("action", default="list", type=Choice(_ACTIONS), metavar="[ACTION]")
@click.argument("args", nargs=-1, metavar="[NAME]...", shell_complete=_complete)
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
@no_headers_option
@snapshot_option
def policies(options: Options) -> int:
    work = {"list": _show, "resume": _resume}.get(options.action, _decide)
    return call(options, "policies", work)


async def _show(session: Session) -> int:
    from sully.cli.client.printers import print_document
    from sully.cli.client.tables import Table
    from sully.cli.client.text import did_you_mean
    from sully.cli.inspect.policies_printer import columns, document, row
    from sully.views.kinds import DEVICE_POLICIES

    snapshot = await take_snapshot(session, (DEVICE_POLICIES,), needed=(DEVICE_POLICIES,))
    known = {policy.metadata.name: policy for policy in snapshot.of(DEVICE_POLICIES).values()}
    patterns, output = session.options.args, session.options.output
    shown = [
        known[name]
        for name in sorted(known)
        if not patterns or any(fnmatchcase(name, text) for text in patterns)
    ]
    if output == NAMES:
        sys.stdout.writelines(f"{_full_name(policy)}\n" for policy in shown)
    elif output not in TABLES:
        print_document({"policies": [document(policy) for policy in shown]}, output)
    elif shown:
        wide = output == "wide"
        table = Table(columns(wide=wide), titled=not session.options.no_headers)
        table.show([row(policy, snapshot.taken, wide=wide) for policy in shown])
    elif not patterns:
        session.warn("No policies found.")
    missing = [text for text in patterns if not any(fnmatchcase(name, text) for name in known)]
    for text in missing:
        session.warn(f'error: devicetaintpolicy "{text}" not found{did_you_mean(text, known)}')
    return 1 if missing else 0


def _full_name(policy: "DeviceTaintPolicy") -> str:
    return f"devicetaintpolicy.sully.dev/{policy.metadata.name}"


async def _resume(session: Session) -> int:
    from sully.domain.devicepolicies.rules import RESUMED_AT
    from sully.machinery.timestamps import format_micro_time
    from sully.views.kinds import DEVICE_POLICIES

    if not session.options.args:
        raise CommandError("missing argument: NAME", code=2)
    for policy in [await _policy(session, name) for name in session.options.args]:
        if policy.status.storm_since is None:
            print(f"{_full_name(policy)} has no storm")
            continue
        annotations = {RESUMED_AT: format_micro_time(session.clock.now())}
        patch = {"metadata": {"annotations": annotations}}
        await session.transport.patch(DEVICE_POLICIES, _key(policy.metadata.name), patch)
        print(f"{_full_name(policy)} resumed")
    return 0


async def _decide(session: Session) -> int:
    """Approve taints, or clear them, by annotations of rules."""
    from sully.api.resource.annotations import CLEARED_AT
    from sully.domain.devicepolicies.rules import APPROVED, decode_state, policy_name
    from sully.machinery.timestamps import format_micro_time
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

    name, *patterns = session.options.args or ("",)
    if not name or not patterns:
        raise CommandError("missing argument: NAME and DEVICE", code=2)
    policy = await _policy(session, name)
    listed = await list_all(session.transport, RULES)
    rules = {decode_state(rule).device: rule for rule in listed if policy_name(rule) == name}
    selected = {device for text in patterns for device in _selected(rules, text, name)}
    approves = session.options.action == "approve"
    if approves and policy.spec.mode != "RequireApproval":
        raise CommandError(
            f'devicetaintpolicy "{name}" needs no approval: its mode is {policy.spec.mode}'
        )
    now = format_micro_time(session.clock.now())
    annotations = {APPROVED: "true"} if approves else {CLEARED_AT: now}
    for device in sorted(selected):
        key = _key(rules[device].metadata.name)
        await session.transport.patch(RULES, key, {"metadata": {"annotations": annotations}})
        print(f"{device} {'approved' if approves else 'declared healthy'}")
    return 0


def _selected(rules: "Iterable[str]", text: str, policy: str) -> list[str]:
    from sully.cli.client.text import did_you_mean

    found = [name for name in rules if fnmatchcase(name, text) or fnmatchcase(name, f"*/{text}")]
    if not found:
        raise CommandError(
            f'devicetaintpolicy "{policy}" has no rule for device "{text}"'
            f"{did_you_mean(text, rules)}\n  list its devices with 'sully explain policy {policy}'"
        )
    return found


async def _policy(session: Session, name: str) -> "DeviceTaintPolicy":
    from sully.cli.client.text import did_you_mean
    from sully.machinery.errors import NotFound
    from sully.views.kinds import DEVICE_POLICIES
    from sully.views.snapshot.loading import list_all

    try:
        listed = await list_all(session.transport, DEVICE_POLICIES)
    except NotFound as error:
        text = "the server has no devicetaintpolicies.sully.dev\n  'sully install' installs them"
        raise CommandError(text) from error
    known: dict[str, DeviceTaintPolicy] = {policy.metadata.name: policy for policy in listed}
    if name not in known:
        raise CommandError(
            f'devicetaintpolicy "{name}" not found{did_you_mean(name, known)}\n'
            "  list them with 'sully policies'"
        )
    return known[name]


def _key(name: str) -> "Key":
    from sully.client.transport import Key

    return Key("", name)
