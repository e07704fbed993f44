"""From the words of `sully taint` to objects: which rules, or which clusters, and what changes.

`sully plan` uses the same, so that what was planned is what is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sully.cli.acting.taintflags import RATE
from sully.cli.client.calling import CommandError, Session, take

if TYPE_CHECKING:
    from sully.api.cluster.types import ManagedCluster, Taint
    from sully.cli.client.patterns import Pattern
    from sully.domain.planning.rulemaking import Marking
    from sully.domain.planning.taintgrammar import Unwanted, Wanted
    from sully.planning.changes import Change
    from sully.views.snapshot import Snapshot

DEVICE, CLUSTER = "device", "cluster"
WHATS = (DEVICE, CLUSTER)
_GLOBS = "*?["

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a command come to."""

    what: str
    names: tuple[str, ...]
    """Patterns of devices, or names of clusters."""
    taints: "tuple[Wanted | Unwanted, ...]"

    @property
    def removes(self) -> bool:
        """Say whether taints are to go."""
        from sully.domain.planning.taintgrammar import Unwanted

        return all(isinstance(each, Unwanted) for each in self.taints)


def read_words(words: Sequence[str], *, remove: bool = False) -> Words:
    """Read `device|cluster NAME… TAINT…`; with `remove` the taints need no dash."""
    from sully.domain.planning.taintgrammar import (
        CLUSTER_EFFECTS,
        DEVICE_EFFECTS,
        TaintSyntaxError,
        is_taint,
        parse_taint,
    )

    what, *rest = [*words, ""][: len(words) + (not words)]
    if what not in WHATS:
        raise CommandError(f"say what to taint: {' or '.join(WHATS)}, not {what!r}", code=2)
    names = [each for each in rest if not is_taint(each)]
    marks = [each for each in rest if is_taint(each)]
    if remove and names and not marks:
        # `untaint cluster eu-2 maintenance`: the last word is a key.
        marks = [names.pop()]
    if remove:
        marks = [each if each.endswith("-") else f"{each}-" for each in marks]
    if not marks:
        raise CommandError(f"say which taint: {what} … KEY[=VALUE]:EFFECT", code=2)
    effects = DEVICE_EFFECTS if what == DEVICE else CLUSTER_EFFECTS
    try:
        taints = tuple(parse_taint(each, effects) for each in marks)
    except TaintSyntaxError as error:
        raise CommandError(str(error), code=2) from error
    return _checked(Words(what, tuple(names), taints))


def _checked(found: Words) -> Words:
    from sully.domain.planning.taintgrammar import Unwanted

    if len({isinstance(each, Unwanted) for each in found.taints}) > 1:
        raise CommandError("set taints and remove taints in two commands", code=2)
    if found.what == DEVICE and not found.removes and len(found.taints) > 1:
        raise CommandError("set one taint at a time: each is a rule of its own", code=2)
    if found.what == CLUSTER and not found.names:
        raise CommandError("say which cluster", code=2)
    return found


async def proposals(session: Session, words: Sequence[str]) -> "tuple[Snapshot, list[Change]]":
    """Return the changes that a taint stands for, and what they would happen to."""
    from sully.cli.acting.proposals import proposed

    found = read_words(words)
    if found.what == CLUSTER:
        snapshot = await take_fleet(session)
        return snapshot, cluster_changes(session, snapshot, found)
    snapshot = await take_devices(session)
    if found.removes:
        from sully.cli.acting.lifting import removals

        return snapshot, removals(snapshot, found)
    bodies = rule_bodies(session, snapshot, found)
    return snapshot, await proposed(session, snapshot, bodies)


async def take_devices(session: Session) -> "Snapshot":
    """Return all that a plan for devices needs."""
    from sully.planning.world import NEEDED
    from sully.views.kinds import RULES, SLICES

    return await take(session, NEEDED, needed=(SLICES, RULES))


async def take_fleet(session: Session) -> "Snapshot":
    """Return all that a plan for clusters needs."""
    from sully.views.fleetkinds import CLUSTERS, PLACEMENTS
    from sully.views.snapshotkinds import FLEET

    return await take(session, FLEET, needed=(CLUSTERS, PLACEMENTS))


# -- devices --------------------------------------------------------------------------------------


def rule_bodies(session: Session, snapshot: "Snapshot", words: Words) -> list[Obj]:
    """Return the rules that set a taint on devices."""
    from sully.cli.client.patterns import parse_pattern
    from sully.domain.planning.rulemaking import rules

    options = session.options
    if not words.names and not (options.device_class or options.cel):
        raise CommandError(
            "say which devices: DRIVER/POOL/DEVICE, --class or --cel; '*' is every device", code=2
        )
    selections: list[dict[str, str]] = []
    for text in words.names or ("*",):
        pattern = parse_pattern(text)
        selections += [names_in(pattern)] if is_plain(pattern) else _expanded(snapshot, pattern)
    unique = [dict(each) for each in dict.fromkeys(tuple(each.items()) for each in selections)]
    bodies = rules(unique, marking(session, words, snapshot.taken))
    if not options.overwrite:
        _refuse_known(snapshot, bodies)
    return bodies


def marking(session: Session, words: Words, now: datetime) -> "Marking":
    """Return the taint that the words and flags stand for."""
    from sully.domain.eviction import EVICTING_WITH_BUDGETS
    from sully.domain.planning.rulemaking import Marking
    from sully.domain.planning.taintgrammar import Wanted

    options, taint = session.options, words.taints[0]
    if not isinstance(taint, Wanted):
        raise CommandError(f"{taint} removes a taint", code=2)
    rate = RATE if options.rate is None else options.rate
    lasts = timedelta(seconds=options.lasts) if options.lasts is not None else None
    return Marking(
        taint=taint,
        device_class=options.device_class,
        expressions=tuple(options.cel),
        reason=options.reason,
        expires=now + lasts if lasts is not None else None,
        rate=rate if taint.effect in EVICTING_WITH_BUDGETS else None,
        name=options.name,
    )


def is_plain(pattern: "Pattern") -> bool:
    """Say whether one rule can say the same: each part is a name, or any."""
    parts = (pattern.driver, pattern.pool, pattern.device)
    return all(each == "*" or not any(mark in each for mark in _GLOBS) for each in parts)


def names_in(pattern: "Pattern") -> dict[str, str]:
    """Return the criteria of a rule that says the same; a part that is `*` is left out."""
    parts = {"driver": pattern.driver, "pool": pattern.pool, "device": pattern.device}
    return {name: part for name, part in parts.items() if part != "*"}


def _expanded(snapshot: "Snapshot", pattern: "Pattern") -> list[dict[str, str]]:
    """Return one selection for each device that a glob stands for now."""
    inventory = snapshot.inventory
    found = [
        {"driver": pool.driver, "pool": pool.pool, "device": name}
        for pool in sorted(inventory.pools())
        if pattern.matches_pool(pool.driver, pool.pool)
        for name in sorted(inventory.devices(pool))
        if pattern.matches(pool.driver, pool.pool, name)
    ]
    if not found:
        text = f"{pattern.driver}/{pattern.pool}/{pattern.device}"
        raise CommandError(f"no device matches {text}\n  'sully devices' lists them")
    return found


def _refuse_known(snapshot: "Snapshot", bodies: Sequence[Obj]) -> None:
    from sully.client.transport import Key
    from sully.views.kinds import RULES

    for body in bodies:
        name = body["metadata"]["name"]
        known = snapshot.get(RULES, Key("", name))
        if known is not None:
            taint = known.spec.taint
            raise CommandError(
                f"devicetaintrule {name} is there already and sets {taint.key}:{taint.effect}\n"
                "  --overwrite changes it, --name makes another"
            )


# -- clusters -------------------------------------------------------------------------------------


def cluster_changes(session: Session, snapshot: "Snapshot", words: Words) -> "list[Change]":
    """Return the clusters as they would be with, or without, the taints."""
    from msgspec.structs import replace

    from sully.client.transport import Key
    from sully.planning.changes import Put
    from sully.views.fleetkinds import CLUSTERS

    found: list[Change] = []
    for name in words.names:
        known = snapshot.get(CLUSTERS, Key("", name))
        if known is None:
            raise CommandError(
                f"there is no ManagedCluster \"{name}\"\n  'kubectl get managedclusters' lists them"
            )
        taints = _retainted(session, known, words, snapshot.taken)
        found.append(Put(CLUSTERS, replace(known, spec=replace(known.spec, taints=taints))))
    return found


def _retainted(
    session: Session, cluster: "ManagedCluster", words: Words, now: datetime
) -> "tuple[Taint, ...]":
    from sully.api.cluster.types import Taint
    from sully.domain.planning.taintgrammar import Unwanted

    name, taints = cluster.metadata.name, list(cluster.spec.taints)
    for each in words.taints:
        if isinstance(each, Unwanted):
            kept = [x for x in taints if not each.means(x.key, x.effect)]
            if len(kept) == len(taints):
                raise CommandError(f"managedcluster {name} has no taint {str(each)[:-1]}")
            taints = kept
            continue
        same = [x for x in taints if (x.key, x.effect) == (each.key, each.effect)]
        if same and not session.options.overwrite:
            raise CommandError(
                f"managedcluster {name} has a taint {each.key}:{each.effect} already\n"
                "  --overwrite changes it"
            )
        taints = [x for x in taints if x not in same]
        since = now.replace(microsecond=0)
        fresh = Taint(key=each.key, value=each.value, effect=each.effect, time_added=since)
        taints.append(fresh)
    return tuple(taints)
