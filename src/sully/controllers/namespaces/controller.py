"""Deletes the content of a terminating namespace, then finalizes it.

Reads namespaces; deletes their content, writes their status, and removes our finalizer through
`/finalize`. What remains, and its conditions, is conditions.py. Pods are deleted first, with their
grace period, and everything else after the last of them, as in Kubernetes: a running pod must not
lose its secrets, its claims or its network policies.

To notice the last finalizer of an object we would have to watch every namespaced kind all the time.
Instead a namespace with remaining content is requeued with backoff (`BACKOFF`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from msgspec.structs import replace

from sully.client.discovery.resources import APIResource
from sully.client.informers.informer import Informer, own_key
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, REQUEUE, Result, Watch
from sully.controllers.framework.kinds import Namespace, PartialObjectMetadata
from sully.controllers.namespaces.conditions import Remainder, conditions, remainder
from sully.controllers.namespaces.objects import WHOLE_NAMESPACES, NamespaceSpec, WholeNamespace
from sully.machinery.errors import ApiError, NotFound
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

log = get_logger("controllers")

FINALIZER = "kubernetes"
BACKOFF = Backoff(base=0.05, cap=5.0)
BACKGROUND = DeleteOptions(propagation_policy="Background")


def namespaced_kinds(served: Iterable[APIResource]) -> Iterable[Kind[PartialObjectMetadata]]:
    """Yield all namespaced kinds; an alias of another resource is left out."""
    for resource in served:
        deletable = resource.verbs >= {"list", "deletecollection"}
        if resource.namespaced and not resource.alias and deletable:
            yield resource.as_kind(PartialObjectMetadata)


async def _no_kinds() -> Iterable[Kind[PartialObjectMetadata]]:
    return ()


class Content:
    """The objects in namespaces, of all these kinds."""

    def __init__(self, transport: Transport, kinds: Iterable[Kind[Any]]) -> None:
        self._transport = transport
        items: list[Kind[PartialObjectMetadata]] = [
            kind.read_as(PartialObjectMetadata) for kind in kinds
        ]
        pods = [kind for kind in items if (kind.group, kind.plural) == ("", "pods")]
        self._stages = (pods, [kind for kind in items if kind not in pods])
        self.custom: Callable[[], Awaitable[Iterable[Kind[PartialObjectMetadata]]]] = _no_kinds
        """Returns the kinds of definitions, which change."""

    async def delete(self, namespace: str) -> Remainder:
        """Delete all objects, or start to, and return what remains."""
        remaining = Remainder()
        pods, others = self._stages
        for kinds in (pods, [*others, *await self.custom()]):
            for kind in kinds:
                remaining += await self._delete_kind(kind, namespace)
            if remaining:
                break
        return remaining

    async def _delete_kind(self, kind: Kind[PartialObjectMetadata], namespace: str) -> Remainder:
        try:
            items = (await self._transport.list(kind, namespace)).items
            if not all(item.is_terminating for item in items):
                await self._transport.delete_collection(kind, namespace, options=BACKGROUND)
                items = (await self._transport.list(kind, namespace)).items
        except ApiError as error:
            # One kind that cannot be deleted must not block the others.
            return Remainder(failures=(str(error),))
        return remainder(kind, namespace, items)


class NamespacesController:
    """Empties and finalizes terminating namespaces."""

    name = "namespace-controller"

    def __init__(
        self,
        *,
        namespaces: Informer[Namespace],
        content: Content,
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
        """Delete the content of a terminating namespace; once it is empty, finalize it."""
        cached = self._namespaces.get(key)
        if cached is None or not cached.is_terminating:
            return DONE
        namespace = await self._get(key)
        if namespace is None or FINALIZER not in namespace.spec.finalizers:
            return DONE
        remaining = await self._content.delete(key.name)
        if remaining or namespace.status.conditions:
            namespace = await self._report(namespace, remaining)
        if remaining:
            if remaining.failures:
                log.warning(
                    "failed to delete the content of a namespace",
                    namespace=key.name,
                    problems=remaining.failures,
                )
            return REQUEUE
        await self._finalize(namespace)
        return DONE

    async def _get(self, key: Key) -> WholeNamespace | None:
        """Return the namespace if it is still terminating.

        The cache may be behind: a recreated namespace must not be emptied.
        """
        try:
            namespace = await self._transport.get(WHOLE_NAMESPACES, key)
        except NotFound:
            return None
        return None if namespace.metadata.deletion_timestamp is None else namespace

    async def _report(self, namespace: WholeNamespace, remaining: Remainder) -> WholeNamespace:
        old = namespace.status.conditions
        new = conditions(old, remaining, now=self._clock.now())
        if new == old:
            return namespace
        status = replace(namespace.status, phase="Terminating", conditions=new)
        changed = replace(namespace, status=status)
        return await self._transport.update(WHOLE_NAMESPACES, changed, "status")

    async def _finalize(self, namespace: WholeNamespace) -> None:
        others = tuple(name for name in namespace.spec.finalizers if name != FINALIZER)
        finalized = replace(namespace, spec=NamespaceSpec(finalizers=others))
        await self._transport.update(WHOLE_NAMESPACES, finalized, "finalize")
        log.info("namespace content deleted", namespace=namespace.metadata.name)
