"""`sully policies`: what device policies do, and what they wait for from people."""

from typing import TYPE_CHECKING

import click

from sully.cli.client.options import (
    NAMES,
    OUTPUTS,
    client_options,
    no_headers_option,
    snapshot_option,
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sully.api.sully.types import DeviceTaintPolicy
    from sully.domain.devicepolicies.states import DeviceState

_ACTIONS = ("list", "approve", "clear", "resume")
_CLOSE = 1.5
"""Seconds that clocks may differ; a server sends whole ones."""
_HELP = """\
List DeviceTaintPolicies and ClusterTaintPolicies and what they do, or decide what they wait for.

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


@command(
    "policies",
    usage="[NAME] [flags]\nlist [NAME...] [flags]\n"
    "approve|clear NAME DEVICE... [flags]\nresume NAME... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("action", default="list", type=ActionOrName(_ACTIONS), metavar="[ACTION]")
@click.argument("args", nargs=-1, metavar="[NAME]...", shell_complete=completer(SUBJECTS["policy"]))
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
@no_headers_option
@snapshot_option
def policies(options: Options) -> int:
    options.action, options.args = action_and_names(options.action, options.args, _ACTIONS)
    work = {"list": _show, "resume": resume_policies}.get(options.action, decide_devices)
    return call(options, "policies", work)


async def _show(session: Session) -> int:
    from sully.cli.inspect.policies import cluster_printer as clusters
    from sully.cli.inspect.policies import printer as devices
    from sully.views.fleet_kinds import CLUSTERS, POLICIES
    from sully.views.kinds import DEVICE_POLICIES

    wide = session.options.output == "wide"
    return await list_objects(
        session,
        Printer(
            DEVICE_POLICIES,
            "policies",
            devices.columns(wide=wide),
            lambda policy, snapshot: devices.row(policy, snapshot.taken, wide=wide),
            lambda policy, _: devices.document(policy),
        ),
        Printer(
            POLICIES,
            "clusterPolicies",
            clusters.columns(wide=wide),
            lambda policy, snapshot: clusters.row(policy, snapshot, wide=wide),
            clusters.document,
        ),
        reads=(CLUSTERS,),
    )


async def resume_policies(session: Session) -> int:
    """End storms."""
    from sully.domain.devicepolicies.rules import RESUMED_AT
    from sully.machinery.formats.timestamps import format_micro_time
    from sully.views.kinds import DEVICE_POLICIES

    if not session.options.args:
        raise CommandError("missing argument: NAME", code=2)
    for policy in await _policies(session, session.options.args):
        name = policy.metadata.name
        if policy.status.storm_since is None:
            print(f"{full_name(DEVICE_POLICIES, name)} has no storm")
            continue
        # Not before the storm, whatever the clocks show.
        resumed = max(await _server_time(session), policy.status.storm_since)
        annotations = {RESUMED_AT: format_micro_time(resumed)}
        await annotate(session, DEVICE_POLICIES, name, annotations)
        print(f"{full_name(DEVICE_POLICIES, name)} resumed")
    return 0


async def _server_time(session: Session) -> "datetime":
    """Return the time of the server, more exactly than it sends it if the clock here agrees."""
    now, server = session.clock.now(), await session.transport.server_time()
    return now if server is None or abs((now - server).total_seconds()) < _CLOSE else server


async def decide_devices(session: Session) -> int:
    """Approve taints, or clear them, by annotations of rules."""
    from sully.api.resource.annotations import CLEARED_AT
    from sully.domain.devicepolicies.rules import APPROVED, decode_state, policy_name
    from sully.machinery.formats.timestamps import format_micro_time
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

    name, *patterns = session.options.args or ("",)
    if not name or not patterns:
        raise CommandError("missing argument: NAME and DEVICE", code=2)
    (policy,) = await _policies(session, [name])
    listed = await list_all(session.transport, RULES)
    rules = {decode_state(rule).device: rule for rule in listed if policy_name(rule) == name}
    selected = {device for text in patterns for device in _selected(rules, text, name)}
    approves = session.options.action == "approve"
    if approves and policy.spec.mode != "RequireApproval":
        raise CommandError(
            f'devicetaintpolicy "{name}" needs no approval: its mode is {policy.spec.mode}'
        )
    states = {device: decode_state(rules[device]) for device in sorted(selected)}
    for device, state in states.items():
        recovered = state.recovered_time
        if approves:
            annotations = {APPROVED: "true"}
        elif recovered is not None:
            # The recovery itself: so it depends on no clock here, and on no later fault.
            annotations = {CLEARED_AT: format_micro_time(recovered)}
        else:
            continue
        await annotate(session, RULES, rules[device].metadata.name, annotations)
        print(f"{device} {'approved' if approves else 'declared healthy'}")
    if not approves:
        _refuse_faulty(name, states.values())
    return 0


def _refuse_faulty(policy: str, states: "Iterable[DeviceState]") -> None:
    """Fail if a device has not recovered: it keeps its taint, even if it is declared healthy."""
    faulty = [state for state in states if state.recovered_time is None]
    if not faulty:
        return
    first, more = faulty[0], f" (and {len(faulty) - 1} more)" if len(faulty) > 1 else ""
    sources = f": {', '.join(first.sources)}" if first.sources else ""
    raise CommandError(
        f'device "{first.device}"{more} still has a fault{sources}; it keeps its taint\n'
        f"  clear it when the fault is over; 'sully explain policy {policy}' shows its state"
    )


def _selected(rules: "Iterable[str]", text: str, policy: str) -> list[str]:

    devices = match_names(rules, text)
    if not devices:
        raise CommandError(
            f'devicetaintpolicy "{policy}" has no rule for device "{text}"'
            f"{did_you_mean(text, rules)}\n  list its devices with 'sully explain policy {policy}'"
        )
    return devices


async def _policies(session: Session, names: "Sequence[str]") -> "list[DeviceTaintPolicy]":
    from sully.views.kinds import DEVICE_POLICIES

    return await find_objects(session, DEVICE_POLICIES, names, listed_by="sully policies")
