"""Creates the objects of the demo, as a user with kubectl would.

Existing objects are not changed, so that another start reverts nothing that users changed. Objects
are created in stages, each once the pods of the earlier ones run: a device that fails before it is
used shows nothing, and placement would depend on the order of creation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from importlib.resources import files
from typing import Any, Final

import yaml

from sully.client.discovery.resources import APIResource
from sully.client.objects import key_of
from sully.client.options import WatchOptions, WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.domain.workloads.workloads import Deployment
from sully.machinery.errors import AlreadyExists, ApiError, NotFound
from sully.runtime.log import get_logger

log = get_logger("demo")

Obj = dict[str, Any]
STAGES = (("fleet.yaml", "teams.yaml"), ("training.yaml",), ("maintenance.yaml",))
PENDING_DEPLOYMENTS = frozenset((Key("team-lab", "big-model"),))
"""Deployments that stay Pending, on purpose."""
_OWN = WriteOptions(field_manager="sully-demo")
_OURS = WatchOptions(label_selector="sully.dev/demo=true")
FAULTS: Final[Mapping[tuple[int, int], Mapping[str, str]]] = {
    (4, 2): {"key": "gpu.sully.dev/ecc-errors", "value": "uncorrected", "effect": "NoSchedule"},
    (8, 5): {"key": "gpu.sully.dev/ecc-errors", "value": "corrected", "effect": "NoSchedule"},
}
"""The taints that drivers set, by the numbers of node and device."""
DEPLOYMENTS: Kind[Deployment] = Kind("apps", "v1", "deployments", "Deployment", Deployment)


class Filler:
    """Creates the objects of the demo."""

    def __init__(self, transport: Transport, served: Iterable[APIResource]) -> None:
        self._transport = transport
        self._kinds = _by_kind(served)

    async def fill(self) -> None:
        """Create what is missing, each stage as soon as the earlier deployments are available."""
        before: list[Obj] = []
        for stage in STAGES:
            stage_objects = list(objects(*stage))
            if before and not await self._exists(stage_objects[0]):
                await self._wait_available(before)
            for obj in stage_objects:
                await self._create(obj)
            before += stage_objects
        log.info("demo objects created")

    async def _create(self, obj: Obj) -> None:
        kind = self._kinds.get((obj["apiVersion"], obj["kind"]))
        if kind is None:
            # Disabled by a feature gate; the other objects are still useful.
            log.info(
                "kind is not served, skipping object",
                kind=obj["kind"],
                name=obj["metadata"]["name"],
            )
            return
        try:
            await self._transport.create(kind, obj, options=_OWN)
        except AlreadyExists:
            return
        except ApiError as error:
            log.warning(
                "object rejected", kind=obj["kind"], name=str(key_of(obj)), error=str(error)
            )

    async def _exists(self, obj: Obj) -> bool:
        kind = self._kinds.get((obj["apiVersion"], obj["kind"]))
        try:
            if kind is not None:
                await self._transport.get(kind, key_of(obj))
        except NotFound:
            return False
        return True

    async def _wait_available(self, created: Iterable[Obj]) -> None:
        """Wait until each deployment has its desired pods."""
        deployments = {key_of(obj) for obj in created if obj["kind"] == "Deployment"}
        waiting = deployments - PENDING_DEPLOYMENTS
        while waiting:
            async with aclosing(self._transport.watch(DEPLOYMENTS, options=_OURS)) as events:
                async for event in events:
                    if event.object is not None and _is_available(event.object):
                        waiting.discard(key_of(event.object))
                    if not waiting:
                        return


def objects(*names: str) -> Iterator[Obj]:
    """Yield the objects of manifests, in order."""
    for name in names:
        text = (files("sully.demo") / name).read_text("utf-8")
        yield from filter(None, yaml.safe_load_all(text))


def _by_kind(served: Iterable[APIResource]) -> Mapping[tuple[str, str], Kind[Obj]]:
    kinds = {}
    for resource in served:
        for version in resource.versions:
            kind: Kind[Obj] = Kind(
                resource.group,
                version,
                resource.plural,
                resource.kind,
                dict,
                namespaced=resource.namespaced,
            )
            kinds[kind.api_version, resource.kind] = kind
    return kinds


def _is_available(deployment: Deployment) -> bool:
    return deployment.status.available_replicas >= deployment.spec.replicas
