"""Keeps the sets: how many clusters each has, which bindings lead to one, and the two built in.

Reads sets, their members and bindings; writes conditions, and puts `default` and `global` back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.types import ManagedClusterSet, ManagedClusterSetBinding
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import PatchType, WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import COUNTING
from sully.controllers.clusters.members import Members
from sully.controllers.conditions import write_conditions
from sully.controllers.framework import DONE, Once, Result, Watch
from sully.domain.clusters.hub import BOUND, BUILT_IN_SETS, UNBOUND, is_astray, set_finding
from sully.machinery.errors import AlreadyExists
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import BINDINGS, SETS

_INDEX = "clusters/set"
_OWN = WriteOptions(field_manager=COUNTING)


class SetStatusController:
    """Says how many clusters a set has."""

    name = COUNTING

    def __init__(
        self,
        *,
        sets: Informer[ManagedClusterSet],
        members: Members,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._sets = sets
        self._members = members
        self._transport = transport
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for sets and for clusters that come into one or leave it."""
        yield Watch(self._members, lambda name: (Key("", name),))

    async def reconcile(self, key: Key) -> Result:
        """Write the condition of a set; of one that cannot be read nothing is said."""
        found, count = self._sets.get(key), self._members.count(key.name)
        if found is None or count is None or found.metadata.deletion_timestamp is not None:
            return DONE
        findings, now = [set_finding(count)], self._clock.now()
        await write_conditions(self._transport, SETS, found, findings, now=now, by=COUNTING)
        return DONE


class BindingStatusController:
    """Says whether a binding leads to a set."""

    name = "managed-cluster-set-bindings"

    def __init__(
        self,
        *,
        bindings: Informer[ManagedClusterSetBinding],
        sets: Informer[ManagedClusterSet],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._bindings = bindings
        self._sets = sets
        self._transport = transport
        self._clock = clock
        bindings.add_index(_INDEX, lambda binding: (binding.spec.cluster_set,))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for bindings, and for the sets they name."""
        yield Watch(self._bindings, own_key)
        yield Watch(self._sets, self._bound)

    async def reconcile(self, key: Key) -> Result:
        """Write the condition of a binding."""
        binding = self._bindings.get(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return DONE
        there = self._sets.get(Key("", binding.spec.cluster_set)) is not None
        findings, now = [BOUND if there else UNBOUND], self._clock.now()
        await write_conditions(self._transport, BINDINGS, binding, findings, now=now, by=COUNTING)
        return DONE

    def _bound(self, found: ManagedClusterSet) -> Iterable[Key]:
        return [key_of(each) for each in self._bindings.by_index(_INDEX, found.metadata.name)]


class BuiltInSetsController:
    """Keeps `default` and `global` as they are meant."""

    name = "managed-cluster-built-in-sets"

    def __init__(self, *, sets: Informer[ManagedClusterSet], transport: Transport) -> None:
        self._sets = sets
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for the two at the start, and whenever one of them changes."""
        yield Watch(Once(Key("", name) for name in BUILT_IN_SETS), lambda key: (key,))
        yield Watch(self._sets, _built_in)

    async def reconcile(self, key: Key) -> Result:
        """Make a set that is missing; put back how it selects, and leave the rest alone."""
        found = self._sets.get(key)
        if found is None:
            await self._create(key.name)
        elif is_astray(found):
            path, selector = "/spec/clusterSelector", _selector(key.name)
            patch = [{"op": "add", "path": path, "value": selector}]
            await self._transport.patch(SETS, key, patch, PatchType.JSON, options=_OWN)
        return DONE

    async def _create(self, name: str) -> None:
        wanted = {"metadata": {"name": name}, "spec": {"clusterSelector": _selector(name)}}
        try:
            await self._transport.create(SETS, wanted, options=_OWN)
        except AlreadyExists:
            # The cache will show it in a moment, and us what is to be done.
            return


def _built_in(found: ManagedClusterSet) -> Iterable[Key]:
    return own_key(found) if found.metadata.name in BUILT_IN_SETS else ()


def _selector(name: str) -> dict[str, Any]:
    wanted = BUILT_IN_SETS[name]
    selector: dict[str, Any] = {"selectorType": wanted.selector_type}
    # An empty selector selects everything; an absent one nothing.
    return selector | ({"labelSelector": {}} if wanted.label_selector is not None else {})
