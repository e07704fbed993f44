"""Who evicts on a server, and which controllers run there: never two of a kind.

On our own API server all controllers are ours. A Kubernetes cluster has its kube-controller-manager
and its scheduler, so there only what they do not do is left. Whether Kubernetes' own eviction
controller is at work cannot be asked, only concluded; where in doubt it is taken to be, because
two of them would evict twice as fast as anybody allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sully.domain.capabilities.offers import (
    DEVICES,
    FIRST_WITH_TAINTS,
    FIRST_WITH_TAINTS_ON,
    OURS,
    PATCHES,
    RULES,
    Offer,
)
from sully.domain.scheduling.objects import SCHEDULERS

Evictor = Literal["auto", "server", "sully"]
"""What an admin says about who evicts."""

SCHEDULER = "sully"
"""The `schedulerName` of pods that are for us on a server with a scheduler of its own."""
OWN_VERSION = "v1alpha1"

OF_KUBERNETES = frozenset(
    (
        "aggregation",
        "serviceaccounts",
        "namespaces",
        "rootca",
        "garbagecollection",
        "resourcequota",
        "replicasets",
        "deployments",
        "disruption",
        "claims",
    )
)
"""Controllers whose work the kube-controller-manager of a Kubernetes cluster does."""
BESIDE_KUBERNETES = (
    "eviction",
    "history",
    "expiry",
    "patchstatus",
    "clusters",
    "scheduling",
    "placement",
)
"""The others, which may run beside it."""
_HUB_NEEDS = {"clusters": "managedclusters", "placement": "placements"}


@dataclass(frozen=True, slots=True)
class ControllerChoice:
    """Whether one controller runs, and why."""

    name: str
    runs: bool
    why: str
    if_asked: bool = False
    """Whether it runs if it is asked for by name."""


@dataclass(frozen=True, slots=True)
class EvictorChoice:
    """Who evicts, and what makes us think so."""

    sully: bool
    why: str
    problem: str = ""
    """Why what the admin wants cannot be."""


class DutyError(ValueError):
    """Somebody asked for a controller that must not run on this server."""


def evictor(found: Offer, said: Evictor = "auto") -> EvictorChoice:
    """Decide who evicts pods from tainted devices."""
    if found.own:
        return EvictorChoice(True, "its controllers are Sully's")
    if said == "server":
        return EvictorChoice(False, "the server's own, as --evictor says")
    if said == "sully":
        lacking = bool(found.rules) and not found.rule_status
        problem = f"taint rules of {found.version} have no status to report to" if lacking else ""
        return EvictorChoice(not problem, "Sully, as --evictor says", problem)
    return _concluded(found)


def _concluded(found: Offer) -> EvictorChoice:
    if found.minor >= FIRST_WITH_TAINTS_ON:
        return EvictorChoice(False, f"Kubernetes evicts by default since 1.{FIRST_WITH_TAINTS_ON}")
    if found.rules:
        return EvictorChoice(False, "taint rules are switched on, so Kubernetes evicts")
    if found.evictor_role:
        return EvictorChoice(False, "Kubernetes' eviction controller has its role")
    if found.minor < FIRST_WITH_TAINTS:
        return EvictorChoice(
            True, f"Kubernetes evicts from devices only since 1.{FIRST_WITH_TAINTS}"
        )
    return EvictorChoice(True, "device taints are switched off in Kubernetes")


def duties(
    found: Offer, names: Iterable[str], said: Evictor = "auto"
) -> tuple[ControllerChoice, ...]:
    """Say of each controller whether it runs."""
    return tuple(_duty(found, name, said) for name in names)


def _duty(found: Offer, name: str, said: Evictor) -> ControllerChoice:
    if found.own:
        return ControllerChoice(name, True, "an API server of Sully")
    if name in OF_KUBERNETES:
        return ControllerChoice(name, False, "the server's kube-controller-manager does it")
    if name in _HUB_NEEDS:
        return _hub_duty(found, name)
    if not found.devices:
        return ControllerChoice(name, False, no_devices(found))
    if name == "eviction":
        who = evictor(found, said)
        return ControllerChoice(name, who.sully, who.problem or who.why)
    if name == "scheduling":
        return ControllerChoice(name, True, f"only for pods with schedulerName: {SCHEDULER}")
    return _own_kind_duty(found, name)


def _hub_duty(found: Offer, name: str) -> ControllerChoice:
    if _HUB_NEEDS[name] not in found.hub:
        return ControllerChoice(name, False, "the server has no Open Cluster Management")
    why = "Open Cluster Management's own controllers do it"
    return ControllerChoice(name, False, f"{why}, unless asked for by name", if_asked=True)


def _own_kind_duty(found: Offer, name: str) -> ControllerChoice:
    missing = [plural for plural in _NEEDS[name] if plural not in found.own_kinds]
    if missing:
        return ControllerChoice(
            name, False, f"the server has no {' and no '.join(missing)}: sully install"
        )
    if name != "patchstatus" and not found.rules:
        return ControllerChoice(name, False, "the server has no taint rules")
    return ControllerChoice(name, True, "no other controller does")


_NEEDS: Mapping[str, tuple[str, ...]] = {
    "history": ("evictionrecords", "taintrecords"),
    "expiry": (),
    "patchstatus": (PATCHES,),
}


def no_devices(found: Offer) -> str:
    """Say why there are no devices for us."""
    if found.too_old:
        return (
            f"the server has devices only in {', '.join(found.too_old)}, which Sully does not speak"
        )
    return "the server has no devices"


def chosen(given: Iterable[ControllerChoice], asked: frozenset[str] | None) -> frozenset[str]:
    """Return the controllers to run; refuse one that was asked for and must not."""
    known = {controller.name: controller for controller in given}
    if asked is None:
        return frozenset(controller.name for controller in known.values() if controller.runs)
    for name in sorted(asked):
        if not (known[name].runs or known[name].if_asked):
            raise DutyError(f"{name} must not run here: {known[name].why}")
    return asked


def schedulers(found: Offer) -> frozenset[str]:
    """Return which `schedulerName` makes a pod ours."""
    return SCHEDULERS if found.own else frozenset((SCHEDULER,))


def moves(found: Offer) -> dict[tuple[str, str], tuple[str, str]]:
    """Return where resources are that a server has elsewhere: group and plural → group, version."""
    if found.own:
        return {}
    moved: dict[tuple[str, str], tuple[str, str]] = {}
    if found.devices not in ("", "v1"):
        for plural in (
            "deviceclasses",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        ):
            moved[DEVICES, plural] = (DEVICES, found.devices)
    if found.rules not in ("", "v1"):
        moved[DEVICES, RULES] = (DEVICES, found.rules)
    if PATCHES in found.own_kinds:
        moved[DEVICES, PATCHES] = (OURS, OWN_VERSION)
    return moved
