"""The DeviceTaintRules that set taints, from the arguments of `sully taint`.

`sully plan` uses the same, so that what was planned is what is done. removals.py has the rules that
are deleted, clusters.py the taints of clusters.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sully.cli.change.taint_args import (
    CLUSTER,
    RATE,
    TaintArgs,
    parse_taint_args,
    refuse_useless_flags,
)
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.cli.client.selectors import Pattern
    from sully.domain.planning.taint_rules import TaintRequest
    from sully.domain.planning.taintgrammar import TaintToAdd
    from sully.planning.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

_GLOBS = "*?["
_PARTS = ("driver", "pool", "device")

Obj = dict[str, Any]


async def taint_changes(session: Session, words: Sequence[str]) -> "tuple[Snapshot, list[Change]]":
    """Return the changes that set or remove taints, and the cluster they would change."""
    from sully.cli.change.clusters import cluster_changes
    from sully.cli.change.manifests import Manifest
    from sully.cli.change.proposals import proposed
    from sully.cli.change.removals import removals
    from sully.cli.change.taint import as_storable
    from sully.machinery.errors import Forbidden

    args = parse_taint_args(words)
    refuse_useless_flags(session.options, args)
    if args.kind == CLUSTER:
        snapshot = await take_fleet(session)
        return snapshot, [*cluster_changes(session, snapshot, args)]
    snapshot = await take_devices(session)
    deletions = removals(session, snapshot, args)
    bodies = rule_bodies(session, snapshot, args)
    if session.connection is not None:
        # Users without write access can still plan.
        with suppress(Forbidden):
            bodies = await as_storable(session, snapshot, bodies)
    return snapshot, [*deletions, *await proposed(session, snapshot, map(Manifest, bodies))]


async def take_devices(session: Session, *, planned: bool = True) -> "Snapshot":
    """Return what a plan for devices needs, or just what creating rules needs."""
    from sully.planning.cluster_copy import PLAN_KINDS
    from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES

    kinds = PLAN_KINDS if planned else (SLICES, CLASSES, RULES, PATCHES)
    return await take_snapshot(session, kinds, needed=(SLICES, RULES), in_files=(SLICES,))


async def take_fleet(session: Session, *, planned: bool = True) -> "Snapshot":
    """Return what a plan for clusters needs, or just the clusters."""
    from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
    from sully.views.snapshot.kinds import FLEET

    if not planned:
        return await take_snapshot(session, (CLUSTERS,), needed=(CLUSTERS,))
    return await take_snapshot(session, FLEET, needed=(CLUSTERS, PLACEMENTS), in_files=(CLUSTERS,))


def rule_bodies(session: Session, snapshot: "Snapshot", args: TaintArgs) -> list[Obj]:
    from sully.cli.client.suggestions import check_class
    from sully.domain.planning.taint_rules import build_rules

    if not args.sets:
        return []
    check_class(snapshot, session.options.device_class)
    selectors = _selectors(session, snapshot, args.names)
    bodies = [
        body
        for taint in args.sets
        for body in build_rules(selectors, taint_request(session, args, taint, snapshot.taken))
    ]
    return [_overwrite(session, snapshot, body) for body in bodies]


def _selectors(
    session: Session, snapshot: "Snapshot", names: Sequence[str]
) -> list[dict[str, str]]:
    """Return the selector of each rule, each once."""
    from sully.cli.client.selectors import parse_pattern
    from sully.cli.client.suggestions import device_not_found

    options = session.options
    if not names and not (options.device_class or options.cel):
        raise CommandError(
            "no devices specified: DRIVER/POOL/DEVICE, --class or --cel ('*' for all)", code=2
        )
    selectors: list[dict[str, str]] = []
    for text in names or ("*",):
        pattern = parse_pattern(text)
        matching = _matching(snapshot, pattern)
        if is_plain(pattern):
            selectors.append(names_in(pattern))
        elif matching:
            selectors += matching
        else:
            problem = device_not_found(snapshot, pattern)
            raise CommandError(f"{problem}\n  list devices with 'sully devices'")
        if not matching:
            problem = device_not_found(snapshot, pattern)
            session.warn(f"warning: the rule currently matches no device: {problem}")
    unique = dict.fromkeys(tuple(selector.items()) for selector in selectors)
    return [dict(items) for items in unique]


def _matching(snapshot: "Snapshot", pattern: "Pattern") -> list[dict[str, str]]:
    """Return the selectors that a pattern expands to now: globs become names, `*` is left out."""
    inventory = snapshot.inventory
    parts = names_in(pattern)
    values = (
        tuple(value for part, value in zip(_PARTS, (*pool, name), strict=True) if part in parts)
        for pool in sorted(inventory.pools())
        if pattern.matches_pool(pool.driver, pool.pool)
        for name in sorted(inventory.devices(pool))
        if pattern.matches(pool.driver, pool.pool, name)
    )
    return [dict(zip(parts, names, strict=True)) for names in dict.fromkeys(values)]


def taint_request(
    session: Session, args: TaintArgs, taint: "TaintToAdd", now: datetime
) -> "TaintRequest":
    from sully.domain.devices.taints import EVICTING_EFFECTS
    from sully.domain.planning.taint_rules import TaintRequest, rule_name

    options = session.options
    rate = RATE if options.rate is None else options.rate
    lasts = timedelta(seconds=options.lasts) if options.lasts is not None else None
    shared = options.name and len(args.sets) > 1
    return TaintRequest(
        taint=taint,
        device_class=options.device_class,
        expressions=tuple(options.cel),
        reason=options.reason,
        expires=now + lasts if lasts is not None else None,
        rate=rate if taint.effect in EVICTING_EFFECTS else None,
        name=rule_name(options.name, taint) if shared else options.name,
    )


def is_plain(pattern: "Pattern") -> bool:
    """Report whether one rule can express a pattern: each part is a name or `*`."""
    parts = (pattern.driver, pattern.pool, pattern.device)
    return all(part == "*" or not any(char in part for char in _GLOBS) for part in parts)


def names_in(pattern: "Pattern") -> dict[str, str]:
    parts = dict(zip(_PARTS, (pattern.driver, pattern.pool, pattern.device), strict=True))
    return {name: part for name, part in parts.items() if part != "*"}


def _overwrite(session: Session, snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule as a patch of an existing one of its name, with --overwrite."""
    from sully.client.objects import to_body
    from sully.client.transport import Key
    from sully.domain.planning.taint_rules import overwrite_patch
    from sully.views.kinds import RULES

    name = body["metadata"]["name"]
    existing = snapshot.get(RULES, Key("", name))
    if existing is None:
        return body
    if not session.options.overwrite:
        taint = existing.spec.taint
        raise CommandError(already_exists(name, f" and sets {taint.key}:{taint.effect}"))
    return overwrite_patch(body, to_body(RULES, existing))


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
    from sully.domain.planning.taint_rules import shared_label
    from sully.views.kinds import RULES

    label, names = shared_label(bodies), {body["metadata"]["name"] for body in bodies}
    rules = (rule.metadata for rule in snapshot.of(RULES).values())
    others = any(rule.labels.get(TOGETHER) == label and rule.name not in names for rule in rules)
    return "" if others else label
