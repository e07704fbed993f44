"""Pods that must be evicted, computed as plainly as possible from what the server has.

The controller keeps views up to date and judges what changed; this looks at everything each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controllers.eviction.evicting import CLAIMS, RULES, SLICES
from controllers.world import PODS, Obj, World
from sully.machinery.formats.timestamps import parse_time


@dataclass(frozen=True)
class Oracle:
    """All that decides, at one moment."""

    now: datetime
    rules: list[Obj]
    slices: list[Obj]
    claims: list[Obj]
    pods: list[Obj]

    def leavers(self) -> set[str]:
        """Return the uids of the pods whose time has come."""
        return {pod["metadata"]["uid"] for pod in self.pods if self._is_due(pod)}

    def _is_due(self, pod: Obj) -> bool:
        if "nodeName" not in pod["spec"] or pod["status"]["phase"] in ("Succeeded", "Failed"):
            return False
        return any(at <= self.now for result in self._held(pod) for at in self._ends(result))

    def _held(self, pod: Obj) -> Iterator[Obj]:
        """Go through the devices that are allocated to a pod."""
        names = {claim["resourceClaimName"] for claim in pod["spec"]["resourceClaims"]}
        for claim in self.claims:
            users = [item["uid"] for item in claim["status"].get("reservedFor", [])]
            if claim["metadata"]["name"] in names and pod["metadata"]["uid"] in users:
                yield from claim["status"]["allocation"]["devices"]["results"]

    def _ends(self, result: Obj) -> Iterator[datetime]:
        """Go through the times at which what is tolerated of a device's taints ends."""
        for taint in (*self._published(result), *self._ruled(result)):
            if taint["effect"] == "NoExecute":
                yield from _end(taint, result.get("tolerations", []))

    def _published(self, result: Obj) -> Iterator[Obj]:
        pool = [
            slice_["spec"]
            for slice_ in self.slices
            if slice_["spec"]["pool"]["name"] == result["pool"]
        ]
        newest = max((spec["pool"]["generation"] for spec in pool), default=0)
        for spec in pool:
            for device in spec["devices"] if spec["pool"]["generation"] == newest else ():
                if device["name"] == result["device"]:
                    yield from device.get("taints", [])

    def _ruled(self, result: Obj) -> Iterator[Obj]:
        for rule in self.rules:
            selector = rule["spec"].get("deviceSelector")
            if selector is not None and selector.items() <= result_names(result).items():
                yield rule["spec"]["taint"]


def result_names(result: Obj) -> dict[str, str]:
    return {name: result[name] for name in ("driver", "pool", "device")}


def _end(taint: Obj, tolerations: Iterable[Obj]) -> Iterator[datetime]:
    seconds: list[Any] = [
        toleration.get("tolerationSeconds")
        for toleration in tolerations
        if _covers(toleration, taint)
    ]
    if None not in seconds:
        shortest = min((max(0, second_) for second_ in seconds), default=0)
        yield parse_time(taint["timeAdded"]) + timedelta(seconds=shortest)


def _covers(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    same = toleration.get("value", "") == taint.get("value", "")
    return toleration["operator"] == "Exists" or same


async def look(world: World) -> Oracle:
    admin = world.admin
    return Oracle(
        world.clock.now(),
        list((await admin.list(RULES)).items),
        list((await admin.list(SLICES)).items),
        list((await admin.list(CLAIMS, "a")).items),
        list((await admin.list(PODS, "a")).items),
    )
