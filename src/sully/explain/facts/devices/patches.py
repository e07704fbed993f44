"""ResourceSlicePatches: what they change, or why nothing: no device matches, or others win."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from sully.api.resource.types import ResourceSlicePatch
from sully.client.transport import Key
from sully.domain.capabilities.inaction import Inaction, Subject, inaction_of
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.patches import sets_values
from sully.domain.eviction.judge import Evict, Wait
from sully.domain.tolerations import taint_text
from sully.explain.causes import Finding, Note, RuleFacts, note
from sully.explain.explanation import Table, tables
from sully.explain.facts.devices.inactive import advice
from sully.explain.facts.devices.selectors import mismatch, undecided
from sully.explain.reader import Reader
from sully.explain.sources import of_patch
from sully.explain.text import attribute_text, selector_text
from sully.views.kinds import CONSUMER_PODS, PATCHES


def find_patch(reader: Reader, key: Key) -> Finding | None:
    patch = reader.snapshot.get(PATCHES, key)
    if patch is None:
        return None
    inventory, source, devices = reader.snapshot.inventory, of_patch(patch), patch.spec.devices
    choices = list(inventory.patch_choices(patch))
    selected = [device for device, choice in choices if choice.selected]
    winners = Counter(
        winner
        for device in map(inventory.device, selected)
        if device is not None
        for winner in _overriding_patches(patch, device)
    )
    failing, selector = undecided(choices), devices.filter
    facts = RuleFacts(
        by=source.by,
        program=source.program,
        created=source.since,
        why=source.why,
        selector="all devices" if selector is None else selector_text(selector),
        mismatch=None if selected else mismatch(reader, selector),
        devices=len(selected),
        values=winners.total(),
        winners=tuple(note("Overrides", patch=x, values=winners[x]) for x in sorted(winners)),
    )
    inactive = _inactive(reader, patch)
    if inactive is not None:
        facts = replace(facts, inactive=inactive.reason, enable=advice(inactive))
    if patch.metadata.deletion_timestamp is not None:
        cause = "Deleted"
    elif inactive is not None:
        cause = "FeatureDisabled" if inactive.gates else "NotSupported"
    elif selected:
        total = len(devices.attributes) + len(devices.capacity) + len(devices.taints)
        entirely = winners.total() >= total * len(selected)
        overridden = "OtherPatchesFirst" if entirely else "PartlyOverridden"
        cause = overridden if winners else "Applied"
    else:
        cause = "SelectorFails" if failing else "NoDevice"
    return Finding(
        kind=PATCHES.kind,
        name=key.name,
        cause=cause,
        facts=facts,
        also=tuple(_also(reader, patch, failing)),
        because=tuple(f"{PATCHES.kind}/{x}" for x in sorted(winners) if cause != "Deleted"),
        details=tables(_values(patch)),
    )


def _inactive(reader: Reader, patch: ResourceSlicePatch) -> Inaction | None:
    """Return why nothing of a patch has an effect; None if something has."""
    plane, taints = reader.snapshot.control_plane, patch.spec.devices.taints
    values = sets_values(patch) and plane.honors_patched_values
    if values or any(plane.honors_patched_taint(taint.effect) for taint in taints):
        return None
    subjects = (Subject.PATCHES, Subject.PATCHED_VALUES, Subject.TAINTS)
    return next(filter(None, (inaction_of(plane, subject) for subject in subjects)), None)


def _also(reader: Reader, patch: ResourceSlicePatch, failing: tuple[Note, ...]) -> Iterator[Note]:
    yield from failing
    if _inactive(reader, patch) is None:
        yield from _partly_inactive(reader, patch)
    if pods := list(_evicted(reader, patch)):
        yield note("EvictedPods", pods=pods)
    if (until := of_patch(patch).until) is not None:
        yield note("Expires", at=until, overdue=False)


def _partly_inactive(reader: Reader, patch: ResourceSlicePatch) -> Iterator[Note]:
    plane, devices = reader.snapshot.control_plane, patch.spec.devices
    subjects = [Subject.PATCHES]
    subjects += [Subject.PATCHED_VALUES] if sets_values(patch) else []
    subjects += [Subject.TAINTS] if devices.taints else []
    for inaction in filter(None, (inaction_of(plane, subject) for subject in subjects)):
        yield note("PartlyInactive", why=inaction.text)


def _overriding_patches(patch: ResourceSlicePatch, device: EffectiveDevice) -> Iterator[str]:
    """Yield the patches that take precedence, once for each value that this one would set."""
    spec, name = patch.spec.devices, patch.metadata.name
    for origins, values in (
        (device.attribute_origins, spec.attributes),
        (device.capacity_origins, spec.capacity),
    ):
        for value in values:
            origin = origins.get(value)
            if origin is not None and origin.name != name:
                yield origin.name
    for taint in spec.taints:
        same = [
            x.origin.name
            for x in device.taints
            if x.origin.kind == PATCHES.kind
            and (x.taint.key, x.taint.effect) == (taint.key, taint.effect)
        ]
        if same and name not in same:
            yield same[0]


def _evicted(reader: Reader, patch: ResourceSlicePatch) -> Iterator[str]:
    origin, now = (PATCHES.kind, patch.metadata.name), reader.exposures.now()
    for key in (
        sorted(reader.snapshot.of(CONSUMER_PODS).keys()) if patch.spec.devices.taints else ()
    ):
        pod = reader.snapshot.usage.pod(key)
        verdict = (
            reader.exposures.judge(pod, now) if pod is not None and not pod.is_terminating else None
        )
        if isinstance(verdict, Evict | Wait) and any(
            (reason.taint.origin.kind, reason.taint.origin.name) == origin
            for reason in verdict.because
        ):
            yield str(key)


def _values(patch: ResourceSlicePatch) -> Table:
    devices = patch.spec.devices
    rows = [
        (name, "(removed)" if value.null is not None else attribute_text(value))
        for name, value in sorted(devices.attributes.items())
    ]
    rows += [(name, amount.value) for name, amount in sorted(devices.capacity.items())]
    rows += [("taint", taint_text(taint)) for taint in devices.taints]
    return Table("Values", ("name", "value"), tuple(rows))
