"""From the words of `sully taint` to objects: which rules, and what changes.

`sully plan` uses the same, so that what was planned is what is done. What the words mean is in
words.py, clusters in clusters.py, the end of taints in lifting.py.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sully.cli.change.taintflags import RATE, refuse_useless_flags
from sully.cli.change.words import CLUSTER, Words, read_words
from sully.cli.client.calling import CommandError, Session
from sully.cli.client.taking import take

if TYPE_CHECKING:
    from sully.cli.client.patterns import Pattern
    from sully.domain.planning.rulemaking import Marking
    from sully.domain.planning.taintgrammar import Wanted
    from sully.planning.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

_GLOBS = "*?["
_PARTS = ("driver", "pool", "device")

Obj = dict[str, Any]


async def proposals(session: Session, given: Sequence[str]) -> "tuple[Snapshot, list[Change]]":
    """Return the changes that a taint stands for, and what they would happen to."""
    from sully.cli.change.clusters import cluster_changes
    from sully.cli.change.lifting import removals
    from sully.cli.change.manifests import Manifest
    from sully.cli.change.proposals import proposed
    from sully.cli.change.taint import as_kept
    from sully.machinery.errors import Forbidden

    words = read_words(given)
    refuse_useless_flags(session.options, words)
    if words.what == CLUSTER:
        snapshot = await take_fleet(session)
        return snapshot, [*cluster_changes(session, snapshot, words)]
    snapshot = await take_devices(session)
    lifts = removals(session, snapshot, words)
    bodies = rule_bodies(session, snapshot, words)
    if session.connection is not None:
        # Who may not write may still ask what would happen.
        with suppress(Forbidden):
            bodies = await as_kept(session, snapshot, bodies)
    return snapshot, [*lifts, *await proposed(session, snapshot, map(Manifest, bodies))]


async def take_devices(session: Session, *, planned: bool = True) -> "Snapshot":
    """Return all that a plan for devices needs, or what makes rules from words if there is none."""
    from sully.planning.world import NEEDED
    from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES

    kinds = NEEDED if planned else (SLICES, CLASSES, RULES, PATCHES)
    return await take(session, kinds, needed=(SLICES, RULES), in_files=(SLICES,))


async def take_fleet(session: Session, *, planned: bool = True) -> "Snapshot":
    """Return all that a plan for clusters needs, or the clusters alone if there is none."""
    from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
    from sully.views.snapshot.kinds import FLEET

    if not planned:
        return await take(session, (CLUSTERS,), needed=(CLUSTERS,))
    return await take(session, FLEET, needed=(CLUSTERS, PLACEMENTS), in_files=(CLUSTERS,))


def rule_bodies(session: Session, snapshot: "Snapshot", words: Words) -> list[Obj]:
    """Return the rules that set taints on devices."""
    from sully.cli.client.guessing import check_class
    from sully.domain.planning.rulemaking import rules

    if not words.sets:
        return []
    check_class(snapshot, session.options.device_class)
    chosen = _selections(session, snapshot, words.names)
    bodies = [
        body
        for each in words.sets
        for body in rules(chosen, marking(session, words, each, snapshot.taken))
    ]
    return [_replacing(session, snapshot, each) for each in bodies]


def _selections(
    session: Session, snapshot: "Snapshot", names: Sequence[str]
) -> list[dict[str, str]]:
    """Return the criteria of each rule, by names; each once."""
    from sully.cli.client.patterns import parse_pattern

    options = session.options
    if not names and not (options.device_class or options.cel):
        raise CommandError(
            "say which devices: DRIVER/POOL/DEVICE, --class or --cel; '*' is every device", code=2
        )
    found: list[dict[str, str]] = []
    for text in names or ("*",):
        pattern = parse_pattern(text)
        there = _matching(snapshot, pattern)
        if is_plain(pattern):
            found.append(names_in(pattern))
        elif there:
            found += there
        else:
            guess = _guess(snapshot, pattern)
            raise CommandError(f"no device matches {text}{guess}\n  'sully devices' lists them")
        if not there:
            guess = _guess(snapshot, pattern)
            session.warn(f"warning: there is no device {text} now{guess}\n  the rule waits for one")
    return [dict(each) for each in dict.fromkeys(tuple(each.items()) for each in found)]


def _matching(snapshot: "Snapshot", pattern: "Pattern") -> list[dict[str, str]]:
    """Return the selections that a pattern stands for now: globs become names, `*` stays open."""
    inventory = snapshot.inventory
    parts = names_in(pattern)
    found = (
        tuple(value for part, value in zip(_PARTS, (*pool, name), strict=True) if part in parts)
        for pool in sorted(inventory.pools())
        if pattern.matches_pool(pool.driver, pool.pool)
        for name in sorted(inventory.devices(pool))
        if pattern.matches(pool.driver, pool.pool, name)
    )
    return [dict(zip(parts, each, strict=True)) for each in dict.fromkeys(found)]


def _guess(snapshot: "Snapshot", pattern: "Pattern") -> str:
    from sully.cli.client.guessing import nearest

    return nearest(snapshot, pattern)


def marking(session: Session, words: Words, taint: "Wanted", now: datetime) -> "Marking":
    """Return a taint with all that the flags say about it."""
    from sully.domain.eviction.judge import EVICTING_WITH_BUDGETS
    from sully.domain.planning.rulemaking import Marking, name_for

    options = session.options
    rate = RATE if options.rate is None else options.rate
    lasts = timedelta(seconds=options.lasts) if options.lasts is not None else None
    shared = options.name and len(words.sets) > 1
    return Marking(
        taint=taint,
        device_class=options.device_class,
        expressions=tuple(options.cel),
        reason=options.reason,
        expires=now + lasts if lasts is not None else None,
        rate=rate if taint.effect in EVICTING_WITH_BUDGETS else None,
        name=name_for(options.name, taint) if shared else options.name,
    )


def is_plain(pattern: "Pattern") -> bool:
    """Say whether one rule can say the same: each part is a name, or any."""
    parts = (pattern.driver, pattern.pool, pattern.device)
    return all(each == "*" or not any(mark in each for mark in _GLOBS) for each in parts)


def names_in(pattern: "Pattern") -> dict[str, str]:
    """Return the criteria of a rule that says the same; a part that is `*` is left out."""
    parts = dict(zip(_PARTS, (pattern.driver, pattern.pool, pattern.device), strict=True))
    return {name: part for name, part in parts.items() if part != "*"}


def _replacing(session: Session, snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule so that it takes the place of one of its name, if that is allowed."""
    from sully.client.objects import to_body
    from sully.client.transport import Key
    from sully.domain.planning.rulemaking import overwriting
    from sully.views.kinds import RULES

    name = body["metadata"]["name"]
    known = snapshot.get(RULES, Key("", name))
    if known is None:
        return body
    if not session.options.overwrite:
        taint = known.spec.taint
        raise CommandError(is_there(name, f" and sets {taint.key}:{taint.effect}"))
    return overwriting(body, to_body(RULES, known))


def is_there(name: str, more: str = "") -> str:
    """Say that a rule of this name exists, and what to do."""
    return (
        f"devicetaintrule {name} is there already{more}\n"
        "  --overwrite changes it, --name makes another"
    )


def own_label(snapshot: "Snapshot", bodies: Sequence[Obj]) -> str:
    """Return the label that rules were made together under, if they alone have it.

    Who gives several taints the same name has rules of all of them under it.
    """
    from sully.domain.devices.rules import TOGETHER
    from sully.domain.planning.rulemaking import made_together
    from sully.views.kinds import RULES

    group, names = made_together(bodies), {each["metadata"]["name"] for each in bodies}
    there = (each.metadata for each in snapshot.of(RULES).values())
    shared = any(each.labels.get(TOGETHER) == group and each.name not in names for each in there)
    return "" if shared else group
