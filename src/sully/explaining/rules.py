"""What belongs to a question about a rule or a patch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sully.api.resource.types import DeviceTaintRule, DeviceTaintSelector, ResourceSlicePatch
from sully.api.sully.types import rules_of
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.rules import needs_content
from sully.domain.devices.taints import NONE
from sully.domain.eviction.judge import Evict, Wait
from sully.domain.eviction.status import tally
from sully.domain.explaining.patches import PatchFacts, explain_patch
from sully.domain.explaining.rules import Leaver, RuleFacts, explain_lifted, explain_rule
from sully.domain.explaining.story import Explanation
from sully.explaining.kinds import SEEN_PODS
from sully.explaining.waiting import account_now, told_account
from sully.explaining.world import World, choices_text
from sully.views.kinds import PATCHES, PODS, RULES

_MOST_JUDGED: Final = 200
"""Pods that are judged once more; who is alike is judged together."""


def rule(world: World, name: str) -> Explanation | None:
    """Explain a rule, also one that is gone; None if nobody knows it."""
    found = world.snapshot.get(RULES, Key("", name))
    records = world.taint_records(name)
    if found is None:
        if not records:
            return None
        last = records[-1]
        left = world.evictions(lambda each: last.spec.rule.uid in rules_of(each))
        return explain_lifted(last, left, world.now)
    uid = found.metadata.uid
    record = next((each for each in records if each.spec.rule.uid == uid), None)
    left = world.evictions(lambda each: uid in rules_of(each))
    recorded = max(len(left), record.status.evicted if record is not None else 0)
    leavers, leaving = _made_to_leave(world, found)
    counted = tally(found.status.conditions, recorded, kept=world.snapshot.remembers)
    evicted = counted.at_least(len(leaving))
    problems = ((each.device, each.choice) for each in world.exposures.problems(found))
    return explain_rule(
        RuleFacts(
            rule=found,
            now=world.now,
            counts=world.exposures.counts(found, evicted=evicted),
            leavers=leavers,
            leaving=leaving,
            complete=counted.complete,
            would=world.exposures.preview(found) if found.spec.taint.effect == NONE else None,
            kept_off=tuple(kept_off(world, name)),
            mismatch=_mismatch(world, found.spec.device_selector),
            problem=choices_text(problems),
            record=record,
            evictions=left,
            terms=world.snapshot.terms,
        )
    )


def _made_to_leave(
    world: World, found: DeviceTaintRule
) -> tuple[tuple[Leaver, ...], tuple[Leaver, ...]]:
    """Return who does not tolerate a rule: who is to leave, and who is on the way out.

    Of the one it is said when it is due, of the other when its grace ends.
    """
    exposures = world.exposures
    due: dict[Key, Leaver] = {}
    leaving: dict[Key, Leaver] = {}
    for held, at in exposures.unwelcome(found):
        for pod in filter(exposures.counts_as_running, exposures.usage.holders(held.claim)):
            key, end = key_of(pod), pod.metadata.deletion_timestamp
            leaver = Leaver(end or at, str(key), pod.spec.node_name, str(held.device))
            if end is None:
                due[key] = min(leaver, due.get(key, leaver))
            elif at <= world.now:
                leaving[key] = min(leaver, leaving.get(key, leaver))
    return tuple(sorted(due.values())), tuple(sorted(leaving.values()))


def kept_off(world: World, name: str) -> Iterator[str]:
    """Yield the pods without a node that a rule keeps devices from.

    What the scheduler wrote down may be half a minute old, so it is found out anew, if not for
    all of too many.
    """
    origin = f"DeviceTaintRule/{name}"
    found = sorted(world.snapshot.of(SEEN_PODS).values(), key=key_of)
    waiting = [each for each in found if not each.spec.node_name and not each.finished]
    for at, pod in enumerate(waiting):
        account = account_now(world, pod) if at < _MOST_JUDGED else told_account(pod)
        asked = account.short if account is not None else ()
        if any(taint.origin == origin for each in asked for taint in each.taints):
            yield pod.label


def _mismatch(world: World, selector: DeviceTaintSelector | None) -> str:
    """Say at which criterion a selector loses the last device."""
    if selector is None:
        return ""
    inventory = world.snapshot.inventory
    pools = [each for each in inventory.pools() if selector.driver in (None, each.driver)]
    if not pools:
        return f"no driver {selector.driver or 'at all'} publishes devices"
    inside = [each for each in pools if selector.pool in (None, each.pool)]
    if not inside:
        return f"there is no pool {selector.pool}"
    if selector.device is not None and not inventory.count_named(selector):
        return f"there is no device {selector.device} there"
    if needs_content(selector):
        parts = [f"class {selector.device_class_name}"] if selector.device_class_name else []
        parts += [each.cel.expression for each in selector.selectors if each.cel is not None]
        return f"no device passes {' and '.join(parts)}"
    return ""


# -- patches --------------------------------------------------------------------------------------


def patch(world: World, name: str) -> Explanation | None:
    """Explain a patch; None if nobody knows it."""
    found = world.snapshot.get(PATCHES, Key("", name))
    if found is None:
        return None
    inventory = world.snapshot.inventory
    choices = list(inventory.patch_choices(found))
    selected = [device for device, choice in choices if choice.selected]
    devices = [each for each in map(inventory.device, selected) if each is not None]
    lost: Counter[str] = Counter()
    for each in devices:
        lost.update(_lost(found, each))
    given = found.spec.devices
    names = len(given.attributes) + len(given.capacity) + len(given.taints)
    return explain_patch(
        PatchFacts(
            patch=found,
            now=world.now,
            selected=len(selected),
            problem=choices_text(choices),
            mismatch=_mismatch(world, given.filter),
            names=names * len(selected),
            lost=dict(lost),
            marked=tuple(_marked(world, found)),
        )
    )


def _lost(found: ResourceSlicePatch, device: EffectiveDevice) -> Iterator[str]:
    """Yield the patches that come first, once for each value that this one would set."""
    given, name = found.spec.devices, found.metadata.name
    for origins, wanted in (
        (device.attribute_origins, given.attributes),
        (device.capacity_origins, given.capacity),
    ):
        for each in wanted:
            origin = origins.get(each)
            if origin is not None and origin.name != name:
                yield origin.name
    for taint in given.taints:
        same = [
            each.origin.name
            for each in device.taints
            if each.origin.kind == "ResourceSlicePatch"
            and (each.taint.key, each.taint.effect) == (taint.key, taint.effect)
        ]
        if same and name not in same:
            yield same[0]


def _marked(world: World, found: ResourceSlicePatch) -> Iterator[str]:
    """Yield the pods that must leave because of a patch."""
    if not found.spec.devices.taints:
        return
    for key in sorted(world.snapshot.of(PODS).keys()):
        pod = world.snapshot.usage.pod(key)
        verdict = world.exposures.judge(pod) if pod is not None and not pod.leaving else None
        if isinstance(verdict, Evict | Wait) and any(
            (each.taint.origin.kind, each.taint.origin.name)
            == ("ResourceSlicePatch", found.metadata.name)
            for each in verdict.because
        ):
            yield str(key)
