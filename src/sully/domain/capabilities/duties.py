"""Which evictor and which controllers run on a server: never two for the same task.

On our own API server all controllers are ours. A Kubernetes cluster has a kube-controller-manager
and a scheduler, so only controllers for other tasks run there. Whether the eviction controller of
Kubernetes runs cannot be queried, only inferred; in doubt it is assumed to run, because two
evictors would exceed the eviction rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from sully.domain.capabilities.evictors import DISABLE_SECOND
from sully.domain.capabilities.offers import (
    DEVICE_POLICIES,
    DEVICES,
    FIRST_WITH_TAINTS,
    FIRST_WITH_TAINTS_ON,
    MAINTENANCES,
    OURS,
    PATCHES,
    RULES,
    Offer,
)
from sully.domain.scheduling.objects import SCHEDULERS

Evictor = Literal["auto", "server", "sully"]
"""The values of the flag --evictor."""

SCHEDULER = "sully"
"""The `schedulerName` of our pods on a server with a scheduler of its own."""
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
        "jobs",
        "statefulsets",
        "daemonsets",
        "disruption",
        "claims",
        "poolstatus",
    )
)
"""Controllers that the kube-controller-manager of a Kubernetes cluster has."""
BESIDE_KUBERNETES = (
    "eviction",
    "history",
    "expiry",
    "patchstatus",
    "deviceconflicts",
    "devicemetrics",
    "devicetaintpolicies",
    "devicemaintenances",
    "clusters",
    "scheduling",
    "placement",
)
"""The others, which may run in addition to it."""
HUB_NEEDS = {"clusters": "managedclusters", "placement": "placements"}
"""The controllers that only a hub needs, and the kinds that they need there."""


class ControllerChoice(msgspec.Struct, frozen=True):
    """Whether one controller runs, and why."""

    name: str
    runs: bool
    why: str
    if_requested: bool = False
    """Whether it runs if the flag --controllers names it."""


class EvictorChoice(msgspec.Struct, frozen=True):
    """Which evictor runs, and why."""

    sully: bool
    why: str
    problem: str = ""
    """Why the value of --evictor is not possible."""
    doubt: str = ""
    """Why the evictor of the server may run, too: what --evictor says cannot be queried."""


class DutyError(ValueError):
    """A controller was requested that must not run on this server."""


def evictor(server: Offer, flag: Evictor = "auto") -> EvictorChoice:
    """Decide which evictor evicts pods from tainted devices."""
    if server.own:
        return EvictorChoice(True, "its controllers are Sully's")
    if flag == "server":
        return EvictorChoice(False, "the server's own, as set by --evictor")
    if flag == "sully":
        lacking = bool(server.rules) and not server.rule_status
        problem = f"taint rules of {server.version} have no status to report to" if lacking else ""
        inferred = _inferred(server)
        doubt = "" if inferred.sully or problem else inferred.why
        return EvictorChoice(not problem, "Sully, as set by --evictor", problem, doubt)
    return _inferred(server)


def _inferred(server: Offer) -> EvictorChoice:
    if server.minor >= FIRST_WITH_TAINTS_ON:
        return EvictorChoice(False, f"Kubernetes evicts by default since 1.{FIRST_WITH_TAINTS_ON}")
    if server.rules:
        return EvictorChoice(False, "taint rules are switched on, so Kubernetes evicts")
    if server.evictor_role:
        return EvictorChoice(False, "Kubernetes' eviction controller has its role")
    if server.minor < FIRST_WITH_TAINTS:
        return EvictorChoice(
            True, f"Kubernetes evicts from devices only since 1.{FIRST_WITH_TAINTS}"
        )
    return EvictorChoice(True, "device taints are switched off in Kubernetes")


def two_evictors_warning(choice: EvictorChoice) -> str:
    """Return what happens if the evictor of the server runs, too; empty if it does not."""
    if not choice.doubt:
        return ""
    return (
        f"{choice.doubt}: if its eviction controller is not disabled, it evicts all pods"
        " immediately, and rates, pauses and budgets have no effect\n"
        f"  {DISABLE_SECOND}"
    )


def duties(
    server: Offer, names: Iterable[str], flag: Evictor = "auto"
) -> tuple[ControllerChoice, ...]:
    """Return for each controller whether it runs."""
    return tuple(_duty(server, name, flag) for name in names)


def _duty(server: Offer, name: str, flag: Evictor) -> ControllerChoice:
    if server.own:
        return ControllerChoice(name, True, "an API server of Sully")
    if name in OF_KUBERNETES:
        return ControllerChoice(name, False, "the server's kube-controller-manager does it")
    if name in HUB_NEEDS:
        return _hub_duty(server, name)
    if not server.devices:
        return ControllerChoice(name, False, no_devices(server))
    if name == "eviction":
        choice = evictor(server, flag)
        return ControllerChoice(name, choice.sully, choice.problem or choice.why)
    if name == "scheduling":
        return ControllerChoice(name, True, f"only for pods with schedulerName: {SCHEDULER}")
    return _own_kind_duty(server, name)


def _hub_duty(server: Offer, name: str) -> ControllerChoice:
    if HUB_NEEDS[name] not in server.hub:
        return ControllerChoice(name, False, "the server has no Open Cluster Management")
    why = "Open Cluster Management's own controllers do it"
    return ControllerChoice(name, False, f"{why}, unless requested by name", if_requested=True)


def _own_kind_duty(server: Offer, name: str) -> ControllerChoice:
    missing = [plural for plural in _NEEDS[name] if plural not in server.own_kinds]
    if missing:
        return ControllerChoice(
            name, False, f"the server has no {' and no '.join(missing)}: sully install"
        )
    if name in _NEED_RULES and not server.rules:
        return ControllerChoice(name, False, "the server has no taint rules")
    return ControllerChoice(name, True, "no other controller does")


_NEEDS: Mapping[str, tuple[str, ...]] = {
    "history": ("evictionrecords", "taintrecords"),
    "expiry": (),
    "patchstatus": (PATCHES,),
    "deviceconflicts": (),
    "devicemetrics": (),
    "devicetaintpolicies": (DEVICE_POLICIES,),
    "devicemaintenances": (MAINTENANCES,),
}
_NEED_RULES = ("history", "expiry", "devicetaintpolicies", "devicemaintenances")


def no_devices(server: Offer) -> str:
    """Return why the server has no devices that Sully supports."""
    if server.too_old:
        versions = ", ".join(server.too_old)
        return f"the server has devices only in {versions}, which Sully does not support"
    return "the server has no devices"


def chosen(choices: Iterable[ControllerChoice], requested: frozenset[str] | None) -> frozenset[str]:
    """Return the controllers to run; raise DutyError for one that was requested and must not."""
    by_name = {controller.name: controller for controller in choices}
    if requested is None:
        return frozenset(controller.name for controller in by_name.values() if controller.runs)
    for name in sorted(requested):
        if not (by_name[name].runs or by_name[name].if_requested):
            raise DutyError(f"{name} must not run here: {by_name[name].why}")
    return requested


def schedulers(server: Offer) -> frozenset[str]:
    """Return the values of `schedulerName` whose pods are ours."""
    return SCHEDULERS if server.own else frozenset((SCHEDULER,))


def moves(server: Offer) -> dict[tuple[str, str], tuple[str, str]]:
    """Return where a server has resources: group and plural → group and version."""
    if server.own:
        return {}
    moved: dict[tuple[str, str], tuple[str, str]] = {}
    if server.devices not in ("", "v1"):
        for plural in (
            "deviceclasses",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        ):
            moved[DEVICES, plural] = (DEVICES, server.devices)
    if server.rules not in ("", "v1"):
        moved[DEVICES, RULES] = (DEVICES, server.rules)
    if PATCHES in server.own_kinds:
        moved[DEVICES, PATCHES] = (OURS, OWN_VERSION)
    return moved
