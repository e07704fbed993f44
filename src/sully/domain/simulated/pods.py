"""What a simulated kubelet reads of a pod: how it ends, its claims, how far it has come."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

from sully.domain.claims.pods import claim_references
from sully.domain.scheduling.objects import Pod
from sully.machinery.meta import is_condition_true

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


def exit_of(pod: Pod) -> Exit | None:
    """Return how a pod ends by itself; None if it does not, or would be started again."""
    ending = parse_exit(pod.metadata.annotations.get(EXIT, ""))
    if ending is None or pod.spec.restart_policy == "Always":
        return None
    return ending if pod.spec.restart_policy == "Never" or ending.code == 0 else None


def is_running(pod: Pod) -> bool:
    """Report whether the containers of a pod run."""
    return pod.status.phase == "Running"


def running_since(pod: Pod) -> datetime | None:
    """Return when the containers of a running pod were started, as far as that is known."""
    ready = pod.condition("ContainersReady")
    if ready is not None and ready.status == "True":
        return ready.last_transition_time
    return pod.status.start_time


def are_gates_open(pod: Pod) -> bool:
    """Report whether the readiness gates of a pod are met."""
    conditions = pod.status.conditions
    return all(is_condition_true(conditions, x.condition_type) for x in pod.spec.readiness_gates)


def claim_names(pod: Pod) -> tuple[str, ...] | None:
    """Return the claims that a pod needs, or None while one of them does not exist yet."""
    references = claim_references(pod)
    if any(reference.missing for reference in references):
        return None
    return tuple(reference.name for reference in references if reference.name)
