"""Deletes what a namespace contains, kind by kind, and tells what is left.

Pods go first and everything else waits for the last of them, as in Kubernetes: a pod that still
runs must not lose its secrets, its claims or the policies that fence it in. Pods are deleted with
their usual grace period.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.client.options import DeleteOptions
from sully.client.transport import Kind, Transport
from sully.controllers.kinds import Item
from sully.controllers.namespaces.conditions import Remainder, remainder
from sully.machinery.errors import ApiError
from sully.machinery.scheme import Scheme

BACKGROUND = DeleteOptions(propagation_policy="Background")


def namespaced_kinds(scheme: Scheme) -> Iterable[Kind[Item]]:
    """Yield all kinds that live in namespaces; another shape of the same objects counts once."""
    for resource in scheme.resources():
        version = next((each for each in resource.versions if each.enabled), None)
        deletable = {"list", "deletecollection"} <= set(resource.verbs)
        if resource.namespaced and deletable and version is not None and not resource.storage:
            yield Kind(resource.group, version.name, resource.plural, resource.kind, Item)


class Content:
    """Everything in namespaces, of the kinds given."""

    def __init__(self, transport: Transport, kinds: Iterable[Kind[Any]]) -> None:
        self._transport = transport
        items: list[Kind[Item]] = [kind.read_as(Item) for kind in kinds]
        pods = [kind for kind in items if (kind.group, kind.plural) == ("", "pods")]
        self._stages = (pods, [kind for kind in items if kind not in pods])

    async def delete(self, namespace: str) -> Remainder:
        """Delete all there is, or begin to, and return what is still there."""
        left = Remainder()
        for kinds in self._stages:
            for kind in kinds:
                left += await self._delete_kind(kind, namespace)
            if left:
                break
        return left

    async def _delete_kind(self, kind: Kind[Item], namespace: str) -> Remainder:
        try:
            items = (await self._transport.list(kind, namespace)).items
            if not all(item.leaving for item in items):
                await self._transport.delete_collection(kind, namespace, options=BACKGROUND)
                items = (await self._transport.list(kind, namespace)).items
        except ApiError as error:
            # One kind that cannot be deleted should not keep the others.
            return Remainder(failures=(str(error),))
        return remainder(kind, namespace, items)
