"""What of a cluster has no effect there, for commands that show or change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

from sully.client.informers.cache import Cache
from sully.client.transport import Kind
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.capabilities.inaction import Inaction, Subject, inaction_of
from sully.domain.devices.patches import sets_values
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.views.kinds import PATCHES, RULES, SLICES

T = TypeVar("T")


class Loaded(Protocol):
    """Objects by kind: a snapshot, or caches."""

    def of(self, kind: Kind[T]) -> Cache[T]:
        """Return the objects of a kind."""


ALL = tuple(Subject)
ON_DEVICES = tuple(subject for subject in ALL if subject is not Subject.RATES)
"""What shows on devices."""
EVICTING = (Subject.TAINTS, Subject.RULES, Subject.RATES)
"""What may evict pods everywhere, and how fast."""


def inactions_in(
    loaded: Loaded, plane: ControlPlane, subjects: Iterable[Subject] = ALL
) -> tuple[Inaction, ...]:
    """Return what exists there and has no effect."""
    known = ((subject, inaction_of(plane, subject)) for subject in subjects)
    return tuple(
        inaction for subject, inaction in known if inaction is not None and _exists(loaded, subject)
    )


def _exists(loaded: Loaded, subject: Subject) -> bool:
    match subject:
        case Subject.RULES | Subject.RATES:
            return bool(loaded.of(RULES).keys())
        case Subject.PATCHES:
            return bool(loaded.of(PATCHES).keys())
        case Subject.PATCHED_VALUES:
            return any(map(sets_values, loaded.of(PATCHES).values()))
        case Subject.TAINTS:
            slices = loaded.of(SLICES).values()
            drivers = any(device.taints for slice_ in slices for device in slice_.spec.devices)
            return drivers or any(x.spec.devices.taints for x in loaded.of(PATCHES).values())


def inactions_of(plane: ControlPlane, objects: Iterable[tuple[str, Any]]) -> Iterator[Inaction]:
    """Yield what would have no effect of objects that are written, by kind; None is deleted."""
    subjects: dict[Subject, None] = {}
    for kind, obj in objects:
        subjects |= dict.fromkeys(_subjects(kind, obj))
    for subject in subjects:
        if (inaction := inaction_of(plane, subject)) is not None:
            yield inaction


def _subjects(kind: str, obj: Any) -> Iterator[Subject]:
    if kind == RULES.kind:
        yield Subject.RULES
        if obj is not None and obj.spec.taint.effect in EVICTING_EFFECTS:
            yield Subject.RATES
    elif kind == PATCHES.kind:
        yield Subject.PATCHES
        if obj is not None and sets_values(obj):
            yield Subject.PATCHED_VALUES
        if obj is not None and obj.spec.devices.taints:
            yield Subject.TAINTS
    elif kind == SLICES.kind and obj is not None and any(x.taints for x in obj.spec.devices):
        yield Subject.TAINTS
