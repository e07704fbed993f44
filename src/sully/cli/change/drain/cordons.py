"""The DeviceTaintRules of `cordon` and `drain`: select devices, write rules, find them again."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from sully.cli.change.drain.args import parse_selection
from sully.cli.change.output import report
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError
from sully.cli.output.formatting import origin_text
from sully.domain.tolerations import taint_text
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.cli.selection.device_selection import DeviceSelection
    from sully.client.transport import Kind
    from sully.domain.devices.pools import DeviceId
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_MOST = 5
"""How many devices with other taints are listed, and how many times at which cordons end."""


class Cordon(msgspec.Struct, frozen=True):
    """Devices to cordon, and the rules for them."""

    snapshot: "Snapshot"
    selection: "DeviceSelection"
    bodies: Sequence[Obj]
    """All rules, also those that exist, as this server can store them."""
    new: Sequence[Obj]
    """The rules that do not exist yet, or that this command created."""
    joined: "Sequence[DeviceTaintRule]" = ()
    """The rules that another command created after the snapshot was taken."""
    written: Sequence[Obj] = ()
    """All rules as they are stored, once they are."""

    @property
    def devices(self) -> "frozenset[DeviceId]":
        return frozenset(self.selection.devices)

    @property
    def existing(self) -> "list[DeviceTaintRule]":
        """The rules that exist: of an earlier run, or of other commands for these devices."""
        from sully.client.transport import Key
        from sully.views.kinds import RULES

        rules = (self.snapshot.get(RULES, Key("", name)) for name in self.names)
        return [rule for rule in rules if rule is not None] + [*self.joined]

    @property
    def names(self) -> list[str]:
        return [str(body["metadata"]["name"]) for body in self.bodies]


async def take(session: Session, needed: "Sequence[Kind[Any]]" = ()) -> "Snapshot":
    from sully.planning.simulation.cluster_copy import PLAN_KINDS
    from sully.views.kinds import RULES, SLICES

    return await take_snapshot(session, PLAN_KINDS, needed=(SLICES, RULES, *needed), gates=True)


async def prepare_cordon(session: Session, snapshot: "Snapshot", operation: str) -> Cordon:
    """Return the rules that cordon the selected devices, as this server can store them."""
    from sully.cli.change.taint.storable import as_storable
    from sully.cli.selection.device_selection import select_devices
    from sully.client.transport import Key
    from sully.domain.drain.rules import cordon_request, cordon_rules
    from sully.views.kinds import RULES

    selection = await select_devices(session, snapshot, parse_selection(session.options))
    lasts = session.options.lasts
    request = cordon_request(
        reason=session.options.reason,
        expires=snapshot.taken + timedelta(seconds=lasts) if lasts is not None else None,
    )
    bodies = await as_storable(
        session, snapshot, cordon_rules(selection.selectors, operation, request)
    )
    new = []
    for body in bodies:
        name = body["metadata"]["name"]
        existing = snapshot.get(RULES, Key("", name))
        if existing is None:
            new.append(body)
        else:
            _refuse_other(existing)
    return Cordon(snapshot, selection, bodies, new)


def _refuse_other(rule: "DeviceTaintRule") -> None:
    """Refuse to use a rule that has the name of a cordon and is none."""
    from sully.domain.drain.rules import is_cordon

    name = rule.metadata.name
    if not is_cordon(rule):
        raise CommandError(
            f'devicetaintrule "{name}" exists and does not belong to a cordon\n'
            f"  to see it:  kubectl get devicetaintrule {name} -o yaml"
        )


async def write_cordon(session: Session, cordon: Cordon) -> Cordon:
    """Write the rules that do not exist, update the others, and return the cordon as written.

    A rule that another command created meanwhile is one of the others.
    """
    from sully.cli.change.taint.writes import write_rules
    from sully.client.objects import key_of
    from sully.domain.drain.rules import metadata_patch
    from sully.views.kinds import RULES

    plain, joined = RULES.read_as(dict), []

    async def update(body: Obj) -> Obj:
        return await session.transport.patch(plain, key_of(body), metadata_patch(body))

    async def join(body: Obj) -> Obj:
        rule = await session.transport.get(RULES, key_of(body))
        _refuse_other(rule)
        joined.append(rule)
        return await update(body)

    written = await write_rules(session, cordon.snapshot, cordon.new, keep=join)
    names = {str(rule["metadata"]["name"]) for rule in written}
    others = (body for body in cordon.bodies if body["metadata"]["name"] not in names)
    written += [await update(body) for body in others]
    joined_names = {rule.metadata.name for rule in joined}
    new = [body for body in cordon.new if body["metadata"]["name"] not in joined_names]
    return replace(cordon, new=new, joined=joined, written=written)


def devices_text(session: Session, cordon: Cordon) -> str:
    """Return how many devices are selected, and by what."""
    return parse_selection(session.options).describe_some(len(cordon.devices))


def report_cordoned(session: Session, cordon: Cordon) -> None:
    devices = cordon.devices
    if not cordon.new:
        report(session, f"{number_of(len(devices), 'device')} already cordoned.")
    else:
        earlier = _cordoned_before(cordon)
        before = number_of(len(devices & earlier), "device")
        now = f"{number_of(len(devices - earlier), 'device')} cordoned"
        report(session, f"{now}, {before} already cordoned." if cordon.existing else f"{now}.")
        if cordon.selection.note:
            report(session, f"note: {cordon.selection.note}")
    for line in _shown(_replaced_reasons(cordon)) + _shown(_ends(cordon)):
        report(session, f"note: {line}")


def _cordoned_before(cordon: Cordon) -> "set[DeviceId]":
    if not cordon.existing:
        return set()
    by_rule = devices_by_rule(cordon.snapshot)
    return set().union(*(by_rule.get(rule.metadata.name, ()) for rule in cordon.existing))


def _shown(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST
    return [*lines[:_MOST], f"and {more} more"] if more > 0 else lines


def _replaced_reasons(cordon: Cordon) -> list[str]:
    """Return which reasons of others --reason replaces."""
    desired = {body["metadata"]["name"]: body["spec"]["taint"] for body in cordon.bodies}
    lines = []
    for rule in cordon.existing:
        before, after = rule.spec.taint.description, desired[rule.metadata.name].get("description")
        if before and after and before != after:
            lines.append(f'{rule.metadata.name} has another reason: "{before}" -> "{after}"')
    return lines


def _ends(cordon: Cordon) -> list[str]:
    """Return when existing cordons end, so that the user does not rely on them for longer.

    All users who cordon the same devices share a rule: --for also changes its end for the others.
    """
    from sully.api.resource.annotations import EXPIRES_AT

    lines = []
    bodies = {body["metadata"]["name"]: body["metadata"] for body in cordon.bodies}
    for rule in cordon.existing:
        name, before = rule.metadata.name, rule.metadata.annotations.get(EXPIRES_AT)
        desired = bodies[name].get("annotations", {}).get(EXPIRES_AT)
        if desired is not None:
            lines.append(f"{name} has another expiry: {before or 'none'} -> {desired}")
        elif before is not None:
            lines.append(f"{name} expires at {before}; --for sets another time")
    return lines


# -- finding rules --------------------------------------------------------------------------------


def cordon_rules_of(snapshot: "Snapshot") -> "dict[str, DeviceTaintRule]":
    """Return the rules of all cordons and drains, by name."""
    from sully.domain.drain.rules import is_cordon
    from sully.views.kinds import RULES

    rules = snapshot.of(RULES).values()
    return {rule.metadata.name: rule for rule in rules if is_cordon(rule)}


def devices_by_rule(snapshot: "Snapshot") -> "dict[str, set[DeviceId]]":
    """Return the devices that each rule taints now."""
    by_rule: dict[str, set[DeviceId]] = {}
    for device in snapshot.devices():
        for taint in device.taints:
            if taint.origin.kind == "DeviceTaintRule":
                by_rule.setdefault(taint.origin.name, set()).add(device.id)
    return by_rule


def other_taints(
    snapshot: "Snapshot", devices: "frozenset[DeviceId]", without: Sequence[str]
) -> list[str]:
    """Return which devices have other taints that prevent scheduling, and their sources."""
    from sully.domain.devices.taints import blocks

    lines = []
    for device in snapshot.devices():
        if device.id not in devices:
            continue
        texts = [
            f"{taint_text(taint.taint)} ({origin_text(taint.origin)})"
            for taint in device.taints
            if blocks(taint.taint)
            and not (taint.origin.kind == "DeviceTaintRule" and taint.origin.name in without)
        ]
        if texts:
            lines.append(f"{device.id}: {', '.join(texts)}")
    return _shown(lines)
