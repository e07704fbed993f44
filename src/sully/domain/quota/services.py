"""What services and volume claims use of a quota."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sully.api.core.volumes.persistentvolumeclaims import CLASS_ANNOTATION
from sully.domain.quota.pods import ONE, REQUESTS, Usage
from sully.domain.quota.scopes import Unscoped
from sully.machinery.formats.quantity import Quantity, parse_quantity

Obj = dict[str, Any]

_NODE_PORTS: Final = "services.nodeports"
_LOAD_BALANCERS: Final = "services.loadbalancers"
_SERVICES: Final = frozenset(("services", "count/services", _NODE_PORTS, _LOAD_BALANCERS))
_CLAIMS: Final = "persistentvolumeclaims"
_STORAGE: Final = f"{REQUESTS}storage"
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"


class Services(Unscoped):
    """Services: their number, and their load balancers and node ports."""

    __slots__ = ()

    def matching(self, names: Iterable[str], /) -> set[str]:
        """Return the names that are about services."""
        return set(_SERVICES.intersection(names))

    def usage(self, obj: Obj, /) -> Usage:
        """Return what a service uses; ports count that it may get and those it has."""
        spec = obj["spec"]
        ports = spec.get("ports") or []
        used: Usage = {"services": ONE, "count/services": ONE}
        match spec.get("type"):
            case "NodePort":
                used[_NODE_PORTS] = Quantity.of(len(ports))
            case "LoadBalancer":
                allocated = spec.get("allocateLoadBalancerNodePorts", True)
                number = sum(bool(allocated or port.get("nodePort")) for port in ports)
                used |= {_NODE_PORTS: Quantity.of(number), _LOAD_BALANCERS: ONE}
            case _:
                used |= {_NODE_PORTS: Quantity.of(0), _LOAD_BALANCERS: Quantity.of(0)}
        return used


class VolumeClaims(Unscoped):
    """Volume claims: their number, and the storage they request, in all and for each class.

    Those with a VolumeAttributesClass are in no scope: such classes are not supported.
    """

    __slots__ = ()

    def matching(self, names: Iterable[str], /) -> set[str]:
        """Return the names that are about claims."""
        plain = (_CLAIMS, _STORAGE)
        return {
            name
            for name in names
            if name in (*plain, f"count/{_CLAIMS}") or name.rpartition(_OF_CLASS)[2] in plain
        }

    def usage(self, obj: Obj, /) -> Usage:
        """Return what a claim uses."""
        notes = obj["metadata"].get("annotations") or {}
        name = notes.get(CLASS_ANNOTATION) or obj["spec"].get("storageClassName")
        used: Usage = {_CLAIMS: ONE, f"count/{_CLAIMS}": ONE}
        request = (obj["spec"]["resources"].get("requests") or {}).get("storage")
        if request is not None:
            used[_STORAGE] = parse_quantity(request)
        if name:
            plain = {key: used[key] for key in (_CLAIMS, _STORAGE) if key in used}
            used |= {f"{name}{_OF_CLASS}{key}": amount for key, amount in plain.items()}
        return used
