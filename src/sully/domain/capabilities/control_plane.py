"""Which scheduler and which eviction controller act on a cluster, and with which feature gates.

Plans, explanations and previews are right only for the components that act there: kube-scheduler
and Sully's scheduler differ, and so do the two eviction controllers. Whether the kinds of Sully are
installed does not show that. `client.discovery.capabilities` calls a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from sully.api.resource.annotations import GUARDS
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.judge import EvictionPolicy
from sully.machinery.compat import Compat

Component = Literal["Kubernetes", "Sully"]
GateEvidence = Literal["", "metrics", "roles"]
"""Where feature gates are known from: published as metrics, or inferred; empty: they are not."""
TAINTS_GATE = "DRADeviceTaints"
RULES_GATE = "DRADeviceTaintRules"
RATES_GATE = "SullyEvictionRate"
PATCHES_GATE = "DRAAdminControlledDeviceAttributes"
_RULE, _PATCH = "DeviceTaintRule", "ResourceSlicePatch"
_EVIDENCE: tuple[GateEvidence, ...] = ("metrics", "roles")
_COMPAT: Mapping[Component, Compat] = {"Kubernetes": Compat.KUBERNETES, "Sully": Compat.SULLY}


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """Which components schedule pods and evict them from tainted devices."""

    SULLY: ClassVar[ControlPlane]
    KUBERNETES: ClassVar[ControlPlane]

    scheduler: Component = "Sully"
    evictor: Component = "Sully"
    second_evictor: str = ""
    """Evidence that Kubernetes evicts as well as Sully; empty: there is none."""
    version: str = ""
    """The version of the API server, where it is known."""
    gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    """The feature gates of the API server that are known."""
    gates_from: GateEvidence = ""

    @property
    def scheduling(self) -> Compat:
        """Return how pods are scheduled."""
        return _COMPAT[self.scheduler]

    @property
    def eviction(self) -> EvictionPolicy:
        """Return how pods are evicted."""
        compat = _COMPAT[self.evictor]
        if not self.honors_taints:
            return EvictionPolicy(compat=compat, effects=frozenset())
        if self.evictor == "Kubernetes":
            return EvictionPolicy(compat=compat)
        # A server that stored a taint that honors budgets had them enabled, so all effects count.
        return EvictionPolicy(effects=EVICTING_EFFECTS)

    @property
    def is_mixed(self) -> bool:
        """Report whether Sully evicts beside kube-scheduler, with feature gates of its own."""
        return (self.scheduler, self.evictor) == ("Kubernetes", "Sully")

    @property
    def unscheduled_origins(self) -> frozenset[str]:
        """Return the kinds of objects whose taints evict pods, but do not prevent scheduling."""
        if not self.is_mixed:
            return frozenset()
        rules = self.is_enabled(TAINTS_GATE) and self.is_enabled(RULES_GATE)
        return frozenset((_PATCH,) if rules else (_PATCH, _RULE))

    @property
    def honors_taints(self) -> bool:
        """Report whether taints of devices have any effect."""
        return self.is_mixed or self.is_enabled(TAINTS_GATE)

    @property
    def honors_rules(self) -> bool:
        """Report whether DeviceTaintRules have any effect."""
        return self.is_mixed or (self.is_enabled(TAINTS_GATE) and self.is_enabled(RULES_GATE))

    @property
    def honors_patches(self) -> bool:
        """Report whether a ResourceSlicePatch changes anything: Kubernetes does not know them."""
        return "Sully" in (self.scheduler, self.evictor)

    def honors_patched_taint(self, effect: str) -> bool:
        """Report whether a taint of a ResourceSlicePatch has any effect."""
        # Beside kube-scheduler only evictions know it.
        evicts = effect in EVICTING_EFFECTS or not self.is_mixed
        return self.honors_patches and self.honors_taints and evicts

    @property
    def honors_patched_values(self) -> bool:
        """Report whether attributes and capacity of a ResourceSlicePatch have any effect."""
        # Only a scheduler reads them.
        return self.scheduler == "Sully" and self.is_enabled(PATCHES_GATE)

    @property
    def honors_rates(self) -> bool:
        """Report whether rates of taints limit evictions."""
        return self.evicts_alone and self.is_enabled(RATES_GATE)

    @property
    def honors_pauses(self) -> bool:
        """Report whether rules can be paused, and evictions per minute be limited."""
        return self.evicts_alone and self.is_enabled(GUARDS)

    @property
    def evicts_alone(self) -> bool:
        """Report whether Sully evicts, and as far as known nothing else does."""
        return self.evictor == "Sully" and not self.second_evictor

    @property
    def honors_suppressions(self) -> bool:
        """Report whether policies can suppress taints of drivers: Kubernetes honors them."""
        return (self.scheduler, self.evictor) == ("Sully", "Sully") and self.is_enabled(GUARDS)

    def is_enabled(self, gate: str) -> bool:
        """Report whether a feature gate is on, or not known to be off."""
        return self.gates.get(gate, True)

    def to_document(self) -> dict[str, Any]:
        """Return it as part of a file."""
        second = {"secondEvictor": self.second_evictor} if self.second_evictor else {}
        return {
            "scheduler": self.scheduler,
            "evictor": self.evictor,
            **second,
            "version": self.version,
            "featureGates": dict(sorted(self.gates.items())),
            "featureGatesFrom": self.gates_from,
        }

    @classmethod
    def from_document(cls, document: Any) -> ControlPlane | None:
        """Read it from a file; None if it is not valid."""
        if not isinstance(document, dict):
            return None
        scheduler = _component(document.get("scheduler"))
        evictor = _component(document.get("evictor"))
        gates, evidence = document.get("featureGates"), document.get("featureGatesFrom")
        if scheduler is None or evictor is None:
            return None
        return cls(
            scheduler=scheduler,
            evictor=evictor,
            second_evictor=str(document.get("secondEvictor") or ""),
            version=str(document.get("version") or ""),
            gates={str(k): bool(v) for k, v in gates.items()} if isinstance(gates, dict) else {},
            gates_from=next((known for known in _EVIDENCE if known == evidence), ""),
        )


def _component(value: Any) -> Component | None:
    return next((component for component in _COMPAT if component == value), None)


ControlPlane.SULLY = ControlPlane()
ControlPlane.KUBERNETES = ControlPlane(scheduler="Kubernetes", evictor="Kubernetes")
