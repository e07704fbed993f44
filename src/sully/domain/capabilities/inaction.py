"""What has no effect on a cluster: feature gates that are off, kinds that no component there reads.

An object that is stored looks as if it worked. Commands show only what is in effect, and report
with these verdicts what is not, why, and what would change that.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec

from sully.domain.capabilities.control_plane import (
    PATCHES_GATE,
    RULES_GATE,
    TAINTS_GATE,
    ControlPlane,
)
from sully.domain.capabilities.evictors import DISABLE_SECOND


class Subject(Enum):
    """What may have no effect."""

    TAINTS = "taints of devices"
    RULES = "DeviceTaintRules"
    PATCHES = "ResourceSlicePatches"
    PATCHED_VALUES = "attributes and capacity of ResourceSlicePatches"
    RATES = "eviction rates, pauses and budgets of taints"


class Inaction(msgspec.Struct, frozen=True, kw_only=True):
    """Why something has no effect, or only a part of it."""

    subject: Subject
    gates: tuple[str, ...] = ()
    """The feature gates that are disabled; none: Kubernetes does not know the kind."""
    own: bool = False
    """Whether the control plane is Sully's."""
    inferred: bool = False
    """Whether the gates are inferred from roles."""
    second_evictor: str = ""
    """Evidence that Kubernetes evicts all pods immediately, besides Sully."""
    evicts: bool = False
    """Whether Sully evicts because of it all the same, so that only scheduling ignores it."""

    @property
    def summary(self) -> str:
        """Return what has no effect, or not all of it."""
        return f"{self.subject.value} {'only evict pods' if self.evicts else 'have no effect'}"

    @property
    def text(self) -> str:
        """Return what has no effect, and why."""
        return f"{self.summary}: {self.reason}"

    @property
    def reason(self) -> str:
        """Return why: which feature gates are disabled and where, or who does not read patches."""
        if self.second_evictor:
            return f"Kubernetes evicts as well as Sully: {self.second_evictor}"
        if not self.gates:
            both = self.subject is Subject.PATCHES and not self.evicts
            subject = (
                "kube-scheduler and kube-controller-manager do" if both else "kube-scheduler does"
            )
            return f"{subject} not read ResourceSlicePatches"
        where = "this server" if self.own else "kube-apiserver"
        several = len(self.gates) > 1
        names = f"feature gate{'s' * several} {' and '.join(self.gates)}"
        seems = ("seem to be" if several else "seems to be") if self.inferred else ""
        return f"{names} {seems or ('are' if several else 'is')} disabled in {where}"

    @property
    def remedy(self) -> str:
        """Return what to do."""
        if self.second_evictor:
            return f"{DISABLE_SECOND}, then restart the controllers of Sully"
        if self.gates:
            where = (
                "sully up"
                if self.own
                else "kube-apiserver, kube-scheduler and kube-controller-manager"
            )
            flags = ",".join(f"{gate}=true" for gate in self.gates)
            return f"to enable {'it' if len(self.gates) == 1 else 'them'}, start {where} with" + (
                f" --feature-gates={flags}"
            )
        scheduled = "only pods with schedulerName: sully are scheduled by them"
        if self.evicts or self.subject is Subject.PATCHED_VALUES:
            return scheduled
        return f"{scheduled}; they evict pods where Sully evicts (sully install --evictor sully)"


def inactions(plane: ControlPlane) -> Iterator[Inaction]:
    """Yield what has no effect where these components act."""
    for subject in Subject:
        inaction = inaction_of(plane, subject)
        if inaction is not None:
            yield inaction


def inaction_of(plane: ControlPlane, subject: Subject) -> Inaction | None:
    """Return why a subject has no effect, or less than one might think; None: it has."""
    if subject is Subject.RATES:
        second = plane.second_evictor
        return Inaction(subject=subject, second_evictor=second) if second else None
    own, inferred = plane.scheduler == "Sully", plane.gates_from == "roles"
    gates = tuple(gate for gate in _GATES[subject] if not plane.is_enabled(gate))
    if subject in _OF_PATCHES and not own:
        if subject is Subject.PATCHED_VALUES and not plane.honors_patches:
            # All of a patch is reported then.
            return None
        evicts = plane.is_mixed and subject is Subject.PATCHES
        return Inaction(subject=subject, evicts=evicts)
    if not gates:
        return None
    return Inaction(subject=subject, gates=gates, own=own, inferred=inferred, evicts=plane.is_mixed)


_OF_PATCHES = (Subject.PATCHES, Subject.PATCHED_VALUES)
_GATES = {
    Subject.TAINTS: (TAINTS_GATE,),
    Subject.RULES: (TAINTS_GATE, RULES_GATE),
    Subject.PATCHES: (),
    Subject.PATCHED_VALUES: (PATCHES_GATE,),
}
"""What each needs; without its gate, a patch still has its taints."""
