"""Reports the size of cluster sets and whether bindings are bound; keeps the built-in sets.

Reads clusters, sets and bindings; writes conditions, and restores `default` and `global`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import PatchType, WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.names import SET_CONTROLLER
from sully.controllers.framework.conditions import write_conditions
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Channel, InitialKeys, same_key
from sully.domain.clusters.hub import BOUND, BUILT_IN_SETS, UNBOUND, is_modified, set_finding
from sully.domain.placement.incremental.membership import Membership, membership
from sully.machinery.errors import AlreadyExists
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import BINDINGS, SETS

_INDEX = "clusters/set"
_OPTIONS = WriteOptions(field_manager=SET_CONTROLLER)


class Members(Channel[Key]):
    """The clusters of each set, also terminating ones: a source of sets whose members changed.

    Only labels matter, so a cluster that reports its health enqueues no set.
    """

    def __init__(
        self, clusters: Informer[ManagedCluster], sets: Informer[ManagedClusterSet]
    ) -> None:
        super().__init__(lambda: (Key("", name) for name in self._rules))
        self._clusters = clusters
        self._rules: dict[str, Membership] = {}
        self._members: dict[str, set[str]] = {}
        sets.on_change(self._set_changed)
        clusters.on_change(self._cluster_changed)

    def count(self, name: str) -> int | None:
        """Return how many clusters a set has; None if it does not exist or is invalid."""
        rule = self._rules.get(name)
        return None if rule is None or rule.problem else len(self._members[name])

    def _set_changed(self, old: ManagedClusterSet | None, new: ManagedClusterSet | None) -> None:
        if new is None:
            if old is not None:
                self._rules.pop(old.metadata.name, None)
                self._members.pop(old.metadata.name, None)
            return
        name = new.metadata.name
        if old is None or old.spec.cluster_selector != new.spec.cluster_selector:
            rule = self._rules[name] = membership(new)
            self._members[name] = {
                cluster.metadata.name
                for cluster in self._clusters.values()
                if rule.has(cluster.metadata.labels)
            }
        # Also if the selector is unchanged: our condition may have been removed.
        self.send(Key("", name))

    def _cluster_changed(self, old: ManagedCluster | None, new: ManagedCluster | None) -> None:
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        cluster = new or old
        if cluster is None:
            return
        for name, rule in self._rules.items():
            members, member = self._members[name], cluster.metadata.name
            belongs = new is not None and rule.has(new.metadata.labels)
            if belongs != (member in members):
                (members.add if belongs else members.discard)(member)
                self.send(Key("", name))


class SetStatusController:
    """Reports how many clusters a set has."""

    name = SET_CONTROLLER

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
        """Wake for sets, and for clusters that are added to or removed from one."""
        yield Watch(self._members, same_key)

    async def reconcile(self, key: Key) -> Result:
        """Write the condition of a set, unless it is invalid."""
        cluster_set, count = self._sets.get(key), self._members.count(key.name)
        if cluster_set is None or count is None or cluster_set.metadata.deletion_timestamp:
            return DONE
        findings, now = [set_finding(count)], self._clock.now()
        await write_conditions(
            self._transport, SETS, cluster_set, findings, now=now, field_manager=SET_CONTROLLER
        )
        return DONE


class BindingStatusController:
    """Reports whether the set of a binding exists."""

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
        yield Watch(self._sets, self._bindings_of)

    async def reconcile(self, key: Key) -> Result:
        """Write the condition of a binding."""
        binding = self._bindings.get(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return DONE
        exists = self._sets.get(Key("", binding.spec.cluster_set)) is not None
        findings, now = [BOUND if exists else UNBOUND], self._clock.now()
        await write_conditions(
            self._transport, BINDINGS, binding, findings, now=now, field_manager=SET_CONTROLLER
        )
        return DONE

    def _bindings_of(self, cluster_set: ManagedClusterSet) -> Iterable[Key]:
        bindings = self._bindings.by_index(_INDEX, cluster_set.metadata.name)
        return [key_of(binding) for binding in bindings]


class BuiltInSetsController:
    """Creates and restores the sets `default` and `global`."""

    name = "managed-cluster-built-in-sets"

    def __init__(self, *, sets: Informer[ManagedClusterSet], transport: Transport) -> None:
        self._sets = sets
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for both at the start, and whenever one of them changes."""
        yield Watch(InitialKeys(Key("", name) for name in BUILT_IN_SETS), same_key)
        yield Watch(self._sets, _built_in)

    async def reconcile(self, key: Key) -> Result:
        """Create a missing set; restore the selector of an existing one, and nothing else."""
        cluster_set = self._sets.get(key)
        if cluster_set is None:
            await self._create(key.name)
        elif is_modified(cluster_set):
            path, selector = "/spec/clusterSelector", _selector(key.name)
            patch = [{"op": "add", "path": path, "value": selector}]
            await self._transport.patch(SETS, key, patch, PatchType.JSON, options=_OPTIONS)
        return DONE

    async def _create(self, name: str) -> None:
        body = {"metadata": {"name": name}, "spec": {"clusterSelector": _selector(name)}}
        try:
            await self._transport.create(SETS, body, options=_OPTIONS)
        except AlreadyExists:
            # The cache is behind; the set is about to be enqueued.
            return


def _built_in(cluster_set: ManagedClusterSet) -> Iterable[Key]:
    return own_key(cluster_set) if cluster_set.metadata.name in BUILT_IN_SETS else ()


def _selector(name: str) -> dict[str, Any]:
    built_in = BUILT_IN_SETS[name]
    selector: dict[str, Any] = {"selectorType": built_in.selector_type}
    # An empty selector selects everything; an absent one nothing.
    return selector | ({"labelSelector": {}} if built_in.label_selector is not None else {})
