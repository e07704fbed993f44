"""Empties a namespace whose deletion was asked for, then lets it go.

Reads namespaces; deletes their content, writes their status, and removes our finalizer through
`/finalize`. What is left and what that means for the status is `conditions.py`.

To learn of the last finalizer of an object we would have to watch every kind that lives in a
namespace, all the time, for the rare moment that one goes. Instead a namespace that waits is
looked at again and again, at growing distances (`BACKOFF`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.controllers.kinds import NAMESPACES, Namespace
from sully.controllers.namespaces.conditions import Remainder, conditions
from sully.machinery.errors import NotFound
from sully.machinery.timestamps import format_time
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

log = get_logger("controllers")

FINALIZER = "kubernetes"
BACKOFF = Backoff(base=0.05, cap=5.0)
WHOLE_NAMESPACES: Kind[dict[str, Any]] = NAMESPACES.read_as(dict)

Obj = dict[str, Any]


class Deleter(Protocol):
    """Deletes the content of a namespace; `content.Content` does."""

    async def delete(self, namespace: str) -> Remainder:
        """Delete all there is, or begin to, and return what is still there."""
        ...


class NamespacesController:
    """Sees terminating namespaces to their end."""

    name = "namespace-controller"

    def __init__(
        self,
        *,
        namespaces: Informer[Namespace],
        content: Deleter,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._namespaces = namespaces
        self._content = content
        self._transport = transport
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for namespaces."""
        yield Watch(self._namespaces, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Delete what is in a terminating namespace; once nothing is, let it go."""
        cached = self._namespaces.get(key)
        if cached is None or not cached.is_terminating:
            return DONE
        namespace = await self._get(key)
        if namespace is None or FINALIZER not in _finalizers(namespace):
            return DONE
        left = await self._content.delete(key.name)
        if left or namespace["status"].get("conditions"):
            namespace = await self._report(namespace, left)
        if left:
            if left.failures:
                log.warning(
                    "failed to delete the content of a namespace",
                    namespace=key.name,
                    problems=left.failures,
                )
            return AGAIN
        await self._let_go(namespace)
        return DONE

    async def _get(self, key: Key) -> Obj | None:
        """Return the namespace if it is really terminating.

        The cache may lag: another namespace may have taken the name, and it must not be emptied.
        """
        try:
            namespace = await self._transport.get(WHOLE_NAMESPACES, key)
        except NotFound:
            return None
        return namespace if "deletionTimestamp" in namespace["metadata"] else None

    async def _report(self, namespace: Obj, left: Remainder) -> Obj:
        status = namespace["status"]
        now = format_time(self._clock.now())
        new = conditions(status.get("conditions") or (), left, now=now)
        if new == status.get("conditions"):
            return namespace
        changed = namespace | {"status": status | {"phase": "Terminating", "conditions": new}}
        return await self._transport.update(WHOLE_NAMESPACES, changed, "status")

    async def _let_go(self, namespace: Obj) -> None:
        others = [name for name in _finalizers(namespace) if name != FINALIZER]
        freed = namespace | {"spec": {"finalizers": others}}
        await self._transport.update(WHOLE_NAMESPACES, freed, "finalize")
        log.info("namespace content deleted", namespace=namespace["metadata"]["name"])


def _finalizers(namespace: Obj) -> list[str]:
    return list(namespace["spec"].get("finalizers") or ())
