"""Keeps the rules of aggregated cluster roles as their selectors say.

Reads cluster roles; applies `rules` to those with an aggregationRule. A role that gathers can
itself be gathered, so a change may take a few rounds; rules only travel along the selectors, and a
round that changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.rbac.aggregation import aggregated_rules
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework import DONE, Result, Watch

Obj = dict[str, Any]

CLUSTER_ROLES: Kind[Obj] = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", dict, namespaced=False
)


class AggregationController:
    """Writes gathered rules into the roles that want them."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, *, roles: Informer[Obj], transport: Transport) -> None:
        self._roles = roles
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake every role that gathers, whichever role has changed."""
        yield Watch(self._roles, self._gathering)

    def _gathering(self, _changed: Obj) -> Iterable[Key]:
        return [key_of(role) for role in self._roles.values() if "aggregationRule" in role]

    async def reconcile(self, key: Key) -> Result:
        """Write the rules of one role if they are not what they should be."""
        role = self._roles.get(key)
        if role is None or "aggregationRule" not in role:
            return DONE
        rules = aggregated_rules(role, self._roles.values())
        if rules == (role.get("rules") or []):
            return DONE
        wanted = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": key.name},
            "rules": rules,
        }
        await self._transport.apply(
            CLUSTER_ROLES, wanted, WriteOptions(field_manager=self.name, force=True)
        )
        return DONE
