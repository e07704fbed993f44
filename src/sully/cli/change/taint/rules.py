"""The DeviceTaintRules that set taints, from the arguments of `sully taint`.

`sully plan` uses the same, so that what was planned is what is done. removals.py has the rules that
are deleted, clusters.py the taints of clusters.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sully.cli.change.taint.args import (
    CLUSTER,
    TaintArgs,
    parse_taint_args,
    refuse_useless_flags,
    requested_rate,
)
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.cli.selection.device_selection import DeviceSelection
    from sully.client.transport import Kind
    from sully.domain.planning.rules.taint_grammar import TaintToAdd
    from sully.domain.planning.rules.taint_rules import TaintRequest
    from sully.planning.dryrun.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]


async def taint_changes(
    session: Session, arguments: Sequence[str]
) -> "tuple[Snapshot, list[Change]]":
    """Return the changes that set or remove taints, and the cluster they would change."""
    from sully.cli.change.plan.manifests import Manifest
    from sully.cli.change.plan.proposals import proposed
    from sully.cli.change.taint.clusters import cluster_changes
    from sully.cli.change.taint.removals import removals
    from sully.cli.change.taint.storable import as_storable
    from sully.machinery.errors import Forbidden

    args = parse_taint_args(arguments)
    refuse_useless_flags(session.options, args)
    if args.kind == CLUSTER:
        snapshot = await take_fleet(session)
        return snapshot, [*cluster_changes(session, snapshot, args)]
    snapshot = await take_devices(session, args)
    deletions = await removals(session, snapshot, args)
    selection = await selected_devices(session, snapshot, args)
    bodies = rule_bodies(session, snapshot, args, selection)
    if session.connection is not None:
        # Users without write access can still plan.
        with suppress(Forbidden):
            bodies = await as_storable(session, snapshot, bodies)
    return snapshot, [*deletions, *await proposed(session, snapshot, map(Manifest, bodies))]


async def take_devices(session: Session, args: TaintArgs, *, planned: bool = True) -> "Snapshot":
    """Return what a plan for devices needs, or just what creating rules needs."""
    from sully.cli.selection.device_selection import selection_kinds
    from sully.planning.simulation.cluster_copy import PLAN_KINDS
    from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, PATCHES, RULES, SLICES

    required = selection_kinds(args.selection(session.options))
    few: set[Kind[Any]] = {SLICES, CLASSES, RULES, PATCHES, CLAIMS, CONSUMER_PODS, *required}
    kinds = PLAN_KINDS if planned else tuple(few)
    needed: tuple[Kind[Any], ...] = (SLICES, RULES, *required)
    return await take_snapshot(session, kinds, needed=needed, in_files=(SLICES,), gates=True)


async def take_fleet(session: Session, *, planned: bool = True) -> "Snapshot":
    """Return what a plan for clusters needs, or just the clusters."""
    from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
    from sully.views.snapshot.kinds import FLEET

    if not planned:
        return await take_snapshot(session, (CLUSTERS,), needed=(CLUSTERS,))
    return await take_snapshot(session, FLEET, needed=(CLUSTERS, PLACEMENTS), in_files=(CLUSTERS,))


async def selected_devices(
    session: Session, snapshot: "Snapshot", args: TaintArgs
) -> "DeviceSelection | None":
    """Return the devices to taint; None if no taint is set."""
    from sully.cli.selection.device_selection import select_devices

    if not args.sets:
        return None
    selection = await select_devices(session, snapshot, args.selection(session.options))
    for problem in selection.missing:
        session.warn(f"warning: the rule currently matches no device: {problem}")
    if selection.note:
        session.warn(f"note: {selection.note}")
    return selection


def rule_bodies(
    session: Session, snapshot: "Snapshot", args: TaintArgs, selection: "DeviceSelection | None"
) -> list[Obj]:
    """Return the rules that set the taints on the selected devices."""
    from sully.domain.planning.rules.taint_rules import build_rules

    if selection is None:
        return []
    bodies = [
        body
        for taint in args.sets
        for body in build_rules(
            selection.selectors, taint_request(session, args, taint, snapshot.taken)
        )
    ]
    return [_overwrite(session, snapshot, body) for body in bodies]


def taint_request(
    session: Session, args: TaintArgs, taint: "TaintToAdd", now: datetime
) -> "TaintRequest":
    from sully.domain.devices.taints import EVICTING_EFFECTS
    from sully.domain.planning.rules.taint_rules import TaintRequest, rule_name

    options = session.options
    lasts = timedelta(seconds=options.lasts) if options.lasts is not None else None
    shared = options.name and len(args.sets) > 1
    return TaintRequest(
        taint=taint,
        reason=options.reason,
        expires=now + lasts if lasts is not None else None,
        rate=requested_rate(options) if taint.effect in EVICTING_EFFECTS else None,
        name=rule_name(options.name, taint) if shared else options.name,
    )


def _overwrite(session: Session, snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule as a patch of an existing one of its name, with --overwrite."""
    from sully.client.objects import to_body
    from sully.client.transport import Key
    from sully.domain.planning.rules.taint_rules import overwrite_patch
    from sully.views.kinds import RULES

    name = body["metadata"]["name"]
    existing = snapshot.get(RULES, Key("", name))
    if existing is None:
        return body
    if not session.options.overwrite:
        taint = existing.spec.taint
        raise CommandError(already_exists(name, f" and sets {taint.key}:{taint.effect}"))
    options = session.options
    rate_set = options.rate is not None or options.burst is not None
    return overwrite_patch(body, to_body(RULES, existing), rate_set=rate_set)


def already_exists(name: str, more: str = "") -> str:
    return (
        f'devicetaintrule "{name}" already exists{more}\n'
        "  use --overwrite to change it, or --name to create another"
    )


def own_label(snapshot: "Snapshot", bodies: Sequence[Obj]) -> str:
    """Return the label of rules that were created together, if no other rule has it.

    Rules of several taints with the same --name share it.
    """
    from sully.domain.devices.rules import TOGETHER
    from sully.domain.planning.rules.taint_rules import shared_label
    from sully.views.kinds import RULES

    label, names = shared_label(bodies), {body["metadata"]["name"] for body in bodies}
    rules = (rule.metadata for rule in snapshot.of(RULES).values())
    others = any(rule.labels.get(TOGETHER) == label and rule.name not in names for rule in rules)
    return "" if others else label
