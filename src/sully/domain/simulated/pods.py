"""Pods as a kubelet sees them: what to run, with which claims, and how far it has come."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import field

from sully.domain.claims import pods
from sully.domain.scheduling.objects import PodCondition
from sully.machinery.meta import Wire, find_condition, is_condition_true

EXIT: Final = "sully.dev/simulated-exit"
"""The annotation that makes a pod end by itself: exit code, @, and how long it runs."""
_EXIT = re.compile(r"(\d{1,3})@(\d{1,6}(?:\.\d{1,3})?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Exit(msgspec.Struct, frozen=True):
    """How a pod ends by itself."""

    code: int
    after: timedelta


def parse_exit(text: str) -> Exit | None:
    """Read an annotation such as `0@5s`; None if it has another form."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255:
        return None
    return Exit(int(match[1]), timedelta(seconds=float(match[2]) * _UNITS[match[3]]))


class Container(Wire, frozen=True, kw_only=True):
    """What runs in a pod."""

    name: str
    image: str = ""
    restart_policy: str | None = None

    @property
    def is_sidecar(self) -> bool:
        """Report whether it is a sidecar: an init container that keeps running."""
        return self.restart_policy == "Always"


class ReadinessGate(Wire, frozen=True, kw_only=True):
    """A condition that others set and that a pod needs to be ready."""

    condition_type: str


class PodMetadata(pods.PodMetadata, frozen=True, kw_only=True):
    """Which pod it is, and whether it stays."""

    generation: int = 0
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)


class PodSpec(pods.PodSpec, frozen=True, kw_only=True):
    """What is to run, and where."""

    restart_policy: str = "Always"
    host_network: bool = False
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()


class PodStatus(pods.PodStatus, frozen=True, kw_only=True):
    """How far it has come."""

    start_time: datetime | None = None
    pod_ip: str = field(default="", name="podIP")
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[dict[str, Any], ...] = ()
    init_container_statuses: tuple[dict[str, Any], ...] = ()


class Pod(pods.Pod, frozen=True, kw_only=True):
    """A pod that has a node."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def running(self) -> bool:
        """Report whether its containers run."""
        return self.status.phase == "Running"

    @property
    def exit(self) -> Exit | None:
        """Return how it ends by itself; None if it does not, or would be started again."""
        ending = parse_exit(self.metadata.annotations.get(EXIT, ""))
        if ending is None or self.spec.restart_policy == "Always":
            return None
        return ending if self.spec.restart_policy == "Never" or ending.code == 0 else None

    def condition(self, type_: str) -> PodCondition | None:
        """Return one of its conditions, or None."""
        return find_condition(self.status.conditions, type_)

    @property
    def gates_open(self) -> bool:
        """Report whether its readiness gates are met."""
        gates, conditions = self.spec.readiness_gates, self.status.conditions
        return all(is_condition_true(conditions, gate.condition_type) for gate in gates)

    def claims(self) -> tuple[str, ...] | None:
        """Return the claims it needs by name, or None while one of them is not made yet."""
        references = pods.claim_references(self)
        if any(reference.missing for reference in references):
            return None
        return tuple(reference.name for reference in references if reference.name)
