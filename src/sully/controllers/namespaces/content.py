"""Deletes what a namespace contains, kind by kind, and tells what is left.

Pods go first and everything else waits for the last of them, as in Kubernetes: a pod that still
runs must not lose its secrets, its claims or the policies that fence it in. Pods are deleted with
their usual grace period.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.client.discovery.resources import APIResource
from sully.client.options import DeleteOptions
from sully.client.transport import Kind, Transport
from sully.controllers.kinds import Item
from sully.controllers.namespaces.conditions import Remainder, remainder
from sully.machinery.errors import ApiError

BACKGROUND = DeleteOptions(propagation_policy="Background")


def namespaced_kinds(served: Iterable[APIResource]) -> Iterable[Kind[Item]]:
    """Yield all kinds that live in namespaces; another shape of the same objects counts once."""
    for each in served:
        if each.namespaced and not each.alias and each.verbs >= {"list", "deletecollection"}:
            yield Kind(each.group, each.versions[0], each.plural, each.kind, Item)


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
            if not all(item.is_terminating for item in items):
                await self._transport.delete_collection(kind, namespace, options=BACKGROUND)
                items = (await self._transport.list(kind, namespace)).items
        except ApiError as error:
            # One kind that cannot be deleted should not keep the others.
            return Remainder(failures=(str(error),))
        return remainder(kind, namespace, items)
