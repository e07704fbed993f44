"""What one object uses of the resources that a quota can limit, kind by kind.

Objects are dictionaries here, as the server decodes and stores them: their use is charged with each
write, and to read the object as a type first would cost more than to charge it.

An evaluator answers for objects of one kind which names of a quota concern them, how much of each
an object uses, and whether an object is in a scope. Objects of all kinds are counted; pods also use
compute resources, and claims use devices or storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from sully.domain.quota import pods
from sully.domain.quota.devices import DEVICES, device_usage
from sully.domain.quota.objects import ScopeRequirement
from sully.domain.quota.pods import ONE, REQUESTS, Usage
from sully.domain.quota.scopes import Unscoped
from sully.domain.quota.services import Services, VolumeClaims
from sully.domain.scheduling.resources import IMPLICIT
from sully.machinery.formats.quantity import Quantity

Obj = dict[str, Any]

IGNORED: Final = frozenset((("", "events"), ("events.k8s.io", "events")))
"""Kinds that no quota counts."""
_ALIASES: Final = frozenset(("configmaps", "replicationcontrollers", "resourcequotas", "secrets"))
"""Kinds of the core group that are also counted by their plain names."""


def _no_owner(_claim: Obj) -> Usage:
    return {}


class Evaluator(Protocol):
    """Computes what objects of one kind use."""

    def matching(self, names: Iterable[str], /) -> set[str]:
        """Return which of the names in a quota concern objects of the kind."""
        ...

    def usage(self, obj: Obj, /) -> Usage:
        """Return what an object uses."""
        ...

    def in_scope(self, obj: Obj, requirement: ScopeRequirement, /) -> bool:
        """Report whether an object is in a scope of a quota."""
        ...

    def unspecified(self, obj: Obj, names: Iterable[str], /) -> str:
        """Name what an object must specify because a quota limits it; empty if nothing."""
        ...


class ObjectCounts(Unscoped):
    """Objects of a kind of which only the number matters."""

    __slots__ = ("names",)

    def __init__(self, group: str, plural: str) -> None:
        self.names = {f"count/{plural}.{group}" if group else f"count/{plural}"}
        if not group and plural in _ALIASES:
            self.names.add(plural)

    def matching(self, names: Iterable[str], /) -> set[str]:
        """Return the names under which the kind is counted."""
        return self.names.intersection(names)

    def usage(self, _obj: Obj, /) -> Usage:
        """Return one of each."""
        return dict.fromkeys(self.names, ONE)


class Pods(msgspec.Struct, frozen=True):
    """Pods: their number, and what they request and may use at most."""

    now: datetime

    def matching(self, names: Iterable[str], /) -> set[str]:
        """Return pods, compute resources and extended resources."""
        return set(filter(pods.is_pod_resource, names))

    def usage(self, obj: Obj, /) -> Usage:
        """Return what a pod uses."""
        return pods.pod_usage(obj, self.now)

    def in_scope(self, obj: Obj, requirement: ScopeRequirement, /) -> bool:
        """Report whether a pod is in a scope."""
        return pods.in_scope(obj, requirement)

    def unspecified(self, obj: Obj, names: Iterable[str], /) -> str:
        """Name the CPU and memory that containers must request or limit."""
        return pods.unspecified(obj, names)


@dataclass(frozen=True, slots=True)
class Claims(Unscoped):
    """Claims: their number, and the most devices they can get."""

    classes: Mapping[str, str] = field(default_factory=dict)
    """The extended resource of each device class; empty for none."""
    owner_usage: Callable[[Obj], Usage] = _no_owner
    """What the pod already uses whose extended resources a claim stands for."""

    def matching(self, names: Iterable[str], /) -> set[str]:
        """Return the names of device classes, and of resources that devices provide."""
        return {name for name in names if self._matches(name)}

    def _matches(self, name: str) -> bool:
        if name == "count/resourceclaims.resource.k8s.io" or name.endswith(DEVICES):
            return True
        if not name.startswith(REQUESTS):
            return False
        resource = name.removeprefix(REQUESTS)
        if resource.startswith(IMPLICIT):
            return resource.removeprefix(IMPLICIT) in self.classes
        return resource in self.classes.values()

    def usage(self, obj: Obj, /) -> Usage:
        """Return the devices of a claim, under every name that its classes have."""
        usage: Usage = {"count/resourceclaims.resource.k8s.io": ONE}
        counted = self.owner_usage(obj)
        for name, number in device_usage(obj).items():
            count = usage[f"{name}{DEVICES}"] = Quantity.of(number)
            for resource in {f"{IMPLICIT}{name}", self.classes.get(name, "")} - {""}:
                key = f"{REQUESTS}{resource}"
                left = count - counted[key] if key in counted else count
                if left.sign() > 0:
                    usage[key] = left
        return usage


def evaluator(group: str, plural: str, now: datetime, claims: Claims) -> Evaluator:
    """Return what evaluates objects of a kind."""
    match group, plural:
        case "", "pods":
            return Pods(now)
        case "resource.k8s.io", "resourceclaims":
            return claims
        case "", "services":
            return Services()
        case "", "persistentvolumeclaims":
            return VolumeClaims()
        case _:
            return ObjectCounts(group, plural)
