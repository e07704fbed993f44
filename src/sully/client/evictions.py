"""Evicts pods through the Eviction API, which honors PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport

_PODS: Kind[dict[str, Any]] = Kind("", "v1", "pods", "Pod", dict)


async def create_eviction(
    transport: Transport, key: Key, uid: str, *, dry_run: bool = False
) -> None:
    """Evict a pod, or try whether that is allowed.

    Raises `NotFound` if it is gone, `TooManyRequests` if a budget does not allow it, and an error
    with the message `TWO_BUDGETS` if several budgets select it.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    await transport.create(_PODS, body, "eviction", WriteOptions(dry_run=dry_run))
