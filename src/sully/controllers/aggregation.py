"""Aggregates the rules of ClusterRoles by their selectors.

Reads ClusterRoles; applies `rules` to those with an aggregationRule. An aggregated role can be
aggregated itself, so a change may take a few rounds; a round that changes nothing writes nothing.
Which rules are aggregated is decided in sully.api.rbac.aggregation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.rbac.aggregation import aggregated_rules
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, Result, Watch

Obj = dict[str, Any]

CLUSTER_ROLES: Kind[Obj] = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", dict, namespaced=False
)


class AggregationController:
    """Writes the rules of aggregated roles."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, *, roles: Informer[Obj], transport: Transport) -> None:
        self._roles = roles
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake every aggregated role, whichever role has changed."""
        yield Watch(self._roles, self._aggregated)

    def _aggregated(self, _changed: Obj) -> Iterable[Key]:
        return [key_of(role) for role in self._roles.values() if "aggregationRule" in role]

    async def reconcile(self, key: Key) -> Result:
        """Write the rules of one aggregated role, if they changed."""
        role = self._roles.get(key)
        if role is None or "aggregationRule" not in role:
            return DONE
        rules = aggregated_rules(role, self._roles.values())
        if rules == (role.get("rules") or []):
            return DONE
        body = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": key.name},
            "rules": rules,
        }
        await self._transport.apply(
            CLUSTER_ROLES, body, WriteOptions(field_manager=self.name, force=True)
        )
        return DONE
