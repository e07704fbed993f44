"""Evicts pods through the Eviction API, which honors PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sully.api.policy.protection import TWO_BUDGETS
from sully.client.options import WriteOptions
from sully.client.transport import TRANSIENT, Key, Kind, Transport, UnreachableError
from sully.domain.drain.messages import DrainEvictionRefused, DrainPod, DrainPodNotFound, PodEvicted
from sully.machinery.errors import ApiError, Conflict, NotFound, Timeout

_PODS: Kind[dict[str, Any]] = Kind("", "v1", "pods", "Pod", dict)


class SeveralBudgetsError(Exception):
    """Several PodDisruptionBudgets select the pod, which the Eviction API does not support."""


async def create_eviction(
    transport: Transport, key: Key, uid: str, *, dry_run: bool = False
) -> None:
    """Evict a pod, or try whether that is allowed.

    Raises `NotFound` if it is gone, `TooManyRequests` if a budget does not allow it, and
    `SeveralBudgetsError` if several budgets select it.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    try:
        await transport.create(_PODS, body, "eviction", WriteOptions(dry_run=dry_run))
    except ApiError as error:
        # The status code differs between servers; only the message identifies it.
        if error.message != TWO_BUDGETS:
            raise
        raise SeveralBudgetsError(TWO_BUDGETS) from error


async def evict_for_drain(
    transport: Transport, pod: DrainPod
) -> PodEvicted | DrainEvictionRefused | DrainPodNotFound:
    """Evict a pod, and return the answer as the drain core takes it."""
    try:
        await create_eviction(transport, Key(pod.namespace, pod.name), pod.uid)
    except (NotFound, Conflict):
        # A conflict: another pod has its name.
        return DrainPodNotFound(pod.uid)
    except TRANSIENT as error:
        answered = not isinstance(error, UnreachableError | Timeout)
        return DrainEvictionRefused(pod.uid, refusal_text(error), answered)
    except SeveralBudgetsError as error:
        return DrainEvictionRefused(pod.uid, refusal_text(error))
    return PodEvicted(pod.uid)


def refusal_text(error: Exception) -> str:
    """Return why a pod was not evicted: a server names the budget in the details."""
    if not isinstance(error, ApiError):
        return str(error)
    causes: Sequence[dict[str, Any]] = (error.details or {}).get("causes") or ({},)
    return str(causes[0].get("message") or error.message)
