"""Pods with devices that nothing may touch while servers of several releases come and go."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crashes.load import MERGE
from crashes.server import Connection, DiedError
from faults.releases import Release
from kills.fleet import NAMESPACE, device_class, node, pod, slice_of, template
from sully.testing.patience import PATIENCE

NODES, PODS = 2, 6
NEWCOMER = 90000
"""The number of the pod that comes after each change of the release."""
_RESOURCE = "/apis/resource.k8s.io/v1"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CLAIMS = f"{_RESOURCE}/namespaces/{NAMESPACE}/resourceclaims"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_UNKNOWN = {"metadata": {"name": "kept"}, "value": 7}
"""An object of a kind that the first release does not serve, and must not lose either."""
Device = tuple[str, str, str]


class Held(NamedTuple):
    """What a pod has."""

    uid: str
    node: str
    phase: str
    devices: tuple[Device, ...]


@dataclass(slots=True)
class Fleet:
    """Nodes with devices, and pods that are bound to them."""

    held: dict[str, Held] = field(default_factory=dict)
    _unknown: dict[str, Any] = field(default_factory=dict)

    async def create(self, connection: Connection) -> None:
        """Create everything, and wait until all pods run."""
        created = [("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})]
        created += [("/api/v1/nodes", node(number)) for number in range(NODES)]
        created += [(f"{_RESOURCE}/resourceslices", slice_of(number)) for number in range(NODES)]
        templates = f"{_RESOURCE}/namespaces/{NAMESPACE}/resourceclaimtemplates"
        created += [(f"{_RESOURCE}/deviceclasses", device_class()), (templates, template())]
        created += [(_PODS, pod(number)) for number in range(PODS)]
        for path, body in created:
            await _create(connection, path, body)
        self._unknown = await _create(connection, _CLASSES, _UNKNOWN)
        await _bound(connection, {_name(number) for number in range(PODS)})
        for number in range(PODS):
            running = {"status": {"phase": "Running"}}
            await connection.call("PATCH", f"{_PODS}/{_name(number)}/status", running, MERGE)
        self.held = await _holders(connection)

    async def check(
        self, connection: Connection, release: Release, *, works: bool = False
    ) -> list[str]:
        """Return what changed; with `works` another pod must get a device of its own."""
        texts = [text async for text in self._strange(connection, release)]
        if works:
            await _create(connection, _PODS, pod(NEWCOMER))
            await _bound(connection, {_name(NEWCOMER)})
        holders = await _holders(connection)
        if works:
            await connection.call("DELETE", f"{_PODS}/{_name(NEWCOMER)}?gracePeriodSeconds=0")
        return [*texts, *differences(self.held, holders)]

    async def _strange(self, connection: Connection, release: Release) -> AsyncIterator[str]:
        """Yield what is wrong with the release, and with what an earlier one does not know."""
        version = (await connection.get("/version"))["gitVersion"]
        if not release.is_current:
            if not version.endswith(f"-{release.version}"):
                yield f"the server is {version}, not {release.version}"
            return
        code, found = await connection.call("GET", f"{_CLASSES}/kept")
        if (code, found) != (200, self._unknown):
            yield f"the PriorityClass was {self._unknown}, is {found}"


def differences(held: dict[str, Held], holders: dict[str, Held]) -> Iterator[str]:
    """Yield how pods are not as they were, and which devices two of them have."""
    for name, before in held.items():
        now = holders.get(name)
        if now != before:
            yield f"pod {name} was {before}, is {now}"
    users = Counter(device for holder in holders.values() for device in holder.devices)
    for device, number in users.items():
        if number > 1:
            yield f"the device {'/'.join(device)} is allocated to {number} pods"


def _name(number: int) -> str:
    return str(pod(number)["metadata"]["name"])


async def _create(connection: Connection, path: str, body: dict[str, Any]) -> Any:
    give_up = time.monotonic() + PATIENCE
    while True:
        code, answer = await connection.call("POST", path, body)
        if code == 201:
            return answer
        # Its service account is created after a namespace, and a deletion may not be done yet.
        if code not in (403, 409) or time.monotonic() > give_up:
            raise DiedError(f"creating {path} answered {code}: {answer}")
        await asyncio.sleep(0.1)


async def _bound(connection: Connection, names: set[str]) -> None:
    give_up = time.monotonic() + PATIENCE
    while waiting := names - {
        name for name, holder in (await _holders(connection)).items() if holder.node
    }:
        if time.monotonic() > give_up:
            raise DiedError(f"pods stay Pending: {', '.join(sorted(waiting))}")
        await asyncio.sleep(0.1)


async def _holders(connection: Connection) -> dict[str, Held]:
    claims = (await connection.get(_CLAIMS))["items"]
    devices: dict[str, list[Device]] = {}
    for claim in claims:
        allocation = claim.get("status", {}).get("allocation", {})
        results = allocation.get("devices", {}).get("results", [])
        for owner in claim["metadata"].get("ownerReferences", []):
            devices.setdefault(owner["uid"], []).extend(
                (result["driver"], result["pool"], result["device"]) for result in results
            )
    holders = {}
    for item in (await connection.get(_PODS))["items"]:
        uid = item["metadata"]["uid"]
        phase = item.get("status", {}).get("phase", "")
        bound_to = item["spec"].get("nodeName", "")
        holders[item["metadata"]["name"]] = Held(
            uid, bound_to, phase, tuple(sorted(devices.get(uid, [])))
        )
    return holders
