"""Informers that a test feeds by hand, and all views over them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, permutations
from typing import Any

import msgspec
import pytest

from sully.client.informers.informer import Informer
from sully.client.transport import Kind, WatchEvent
from sully.domain.eviction.judge import EvictionPolicy
from sully.machinery.compat import Compat
from sully.testing.clock import FakeClock
from sully.views.devices.changes import Features, InventoryChange
from sully.views.devices.exposures import Exposures
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, PATCHES, RULES, SLICES


class Feed:
    """A collection whose changes a test makes up."""

    _versions = count(100)

    def __init__(self, kind: Kind[Any], clock: FakeClock) -> None:
        no_server: Any = None
        self.informer: Informer[Any] = Informer(no_server, kind, clock=clock)

    def put(self, *objects: Any) -> None:
        for obj in objects:
            metadata = msgspec.structs.replace(
                obj.metadata, resource_version=str(next(self._versions))
            )
            new = msgspec.structs.replace(obj, metadata=metadata)
            self.informer.change(WatchEvent("MODIFIED", new, metadata.resource_version))

    def remove(self, *objects: Any) -> None:
        for obj in objects:
            self.informer.change(WatchEvent("DELETED", obj, str(next(self._versions))))


class Scene:
    """The views, over collections that a test feeds."""

    def __init__(
        self,
        features: Features | None = None,
        *,
        strict: bool = False,
        patches: bool = True,
        defer: bool = False,
    ) -> None:
        self.clock = FakeClock()
        self.slices = Feed(SLICES, self.clock)
        self.rules = Feed(RULES, self.clock)
        self.patches = Feed(PATCHES, self.clock)
        self.classes = Feed(CLASSES, self.clock)
        self.pods = Feed(CONSUMER_PODS, self.clock)
        self.claims = Feed(CLAIMS, self.clock)
        self.inventory = Inventory(
            slices=self.slices.informer,
            classes=self.classes.informer,
            rules=self.rules.informer,
            patches=self.patches.informer if patches else None,
            features=features,
            defer=defer,
        )
        self.usage = Usage(
            pods=self.pods.informer, claims=self.claims.informer, extended_resources=not strict
        )
        policy = EvictionPolicy(compat=Compat.KUBERNETES if strict else Compat.SULLY)
        self.exposures = Exposures(self.inventory, self.usage, clock=self.clock, policy=policy)

    def changes(self) -> list[InventoryChange]:
        """Return a list that grows with every change of the inventory from now on."""
        heard: list[InventoryChange] = []
        self.inventory.on_change(heard.append)
        heard.clear()
        return heard

    def taints(self) -> dict[str, list[str]]:
        """Return the taints of all devices with their origins, as texts."""
        result = {}
        for pool in sorted(self.inventory.pools()):
            known = self.inventory.pool(pool)
            assert known is not None
            for published in known.devices():
                device = self.inventory.device(published.id)
                assert device is not None
                result[str(device.id)] = [
                    f"{taint.origin} {taint.taint.key}" for taint in device.taints
                ]
        return result


Step = Callable[[Scene], None]


def put(feed: str, *objects: object) -> Step:
    """Return the step in which a collection gets objects, or other states of them."""

    def step(scene: Scene) -> None:
        getattr(scene, feed).put(*objects)

    return step


def orders(*steps: Step) -> list[Any]:
    """Return all orders of steps, as parameters of a test."""
    return [
        pytest.param(order, id="-".join(str(steps.index(step)) for step in order))
        for order in permutations(steps)
    ]
