"""A world with templates, claims and pods, and the claim controller in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from controllers.recording_transport import RecordingTransport
from controllers.world import ACCOUNTS, CALM, NAMESPACES, PODS, Make, Obj, World
from manifests import claim_references, claim_spec, pod_spec, result
from sully.client.events import EVENTS
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.claims import lookups
from sully.controllers.claims.controller import COMPONENT, NAME, PodClaimsController
from sully.controllers.claims.creator import ClaimCreator
from sully.controllers.claims.lookups import Lookups
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.releasing import ReleaseController
from sully.controllers.framework.manager import Manager
from sully.domain.claims.lifecycle import FINALIZER
from sully.machinery.errors import NotFound
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.snapshot import kinds as snapshots

CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
TEMPLATES: Kind[Obj] = lookups.TEMPLATES.read_as(dict)
NOW = DeleteOptions(grace_period_seconds=0)
SPEC = claim_spec()
RESULT = result("gpu-0", "node-1")


@dataclass
class Claiming:
    """How the controller is made, and what it did."""

    transport: RecordingTransport | None = None
    metrics: Metrics = field(default_factory=Metrics)
    _counted: ClaimMetrics | None = None

    def make(self, world: World, manager: Manager) -> PodClaimsController:
        """Build both halves; the one that is returned is still to be added."""
        result = Lookups(
            pods=manager.informer(snapshots.PODS),
            claims=manager.informer(kinds.CLAIMS),
            templates=manager.informer(lookups.TEMPLATES),
        )
        self.transport = self.transport or RecordingTransport(world, NAME)
        self._counted = self._counted or ClaimMetrics(self.metrics)
        self._counted.follow(result.claims)
        manager.add(ReleaseController(lookups=result, transport=self.transport), backoff=CALM)
        return PodClaimsController(
            lookups=result,
            creator=ClaimCreator(lookups=result, transport=self.transport, metrics=self._counted),
            transport=self.transport,
            recorder=manager.env(self.transport, COMPONENT).recorder,
        )

    @property
    def asked(self) -> RecordingTransport:
        assert self.transport is not None
        return self.transport

    def writes(self) -> list[str]:
        return [call for call in self.asked.calls if not call.startswith("get ")]


def controller() -> Make:
    """Return a way to make the controller, for tests that do not look at its calls."""
    return Claiming().make


async def prepare(world: World, name: str = "a") -> None:
    await world.admin.create(NAMESPACES, {"metadata": {"name": name}})
    await world.create(ACCOUNTS, name, "default")


async def template(world: World, name: str = "t", **metadata: Any) -> Obj:
    spec: Obj = {"spec": SPEC}
    if metadata:
        spec["metadata"] = metadata
    return await world.create(TEMPLATES, "a", name, spec=spec)


async def prepare_template(world: World) -> None:
    """Make a namespace with a template `t` for claims of one device."""
    await prepare(world)
    await template(world)


async def pod(
    world: World,
    name: str = "p",
    node: str = "",
    named: str = "",
    extended: str = "",
    **templates: str,
) -> Obj:
    """Make a pod that wants claims from templates (`g="t"`), or one that has a name."""
    references = [
        {"name": claim, "resourceClaimTemplateName": entry} for claim, entry in templates.items()
    ]
    if named:
        references += claim_references(named)
    resources = {"limits": {extended: "1"}} if extended else None
    spec = pod_spec(resources=resources, resourceClaims=references)
    if node:
        spec["nodeName"] = node
    return await world.create(PODS, "a", name, spec=spec)


async def claim(world: World, name: str = "c", owner: Obj | None = None, **metadata: Any) -> Obj:
    if owner is not None:
        made_for = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        reference = {"apiVersion": "v1", "kind": "Pod", "controller": True, **made_for}
        metadata["ownerReferences"] = [reference]
    return await world.create(CLAIMS, "a", name, metadata=metadata, spec=SPEC)


def used_by(pod: Obj) -> Obj:
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


def nobody(uid: str = "5f3b1c52-0000-4000-8000-000000000000", name: str = "ghost") -> Obj:
    return {"resource": "pods", "name": name, "uid": uid}


async def allocate(
    world: World, name: str = "c", *consumers: Obj, protected: bool = True, **status: Any
) -> None:
    """Give a claim a device as the scheduler does: first the finalizer, then the status."""
    key = Key("a", name)
    if protected:
        await world.admin.patch(CLAIMS, key, {"metadata": {"finalizers": [FINALIZER]}})
    filled = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": list(consumers)}
    await world.admin.patch(CLAIMS, key, {"status": filled | status}, subresource="status")


async def set_status(world: World, name: str = "p", **status: Any) -> None:
    await world.admin.patch(PODS, Key("a", name), {"status": status}, subresource="status")


async def bind(world: World, name: str = "p", node: str = "node-1") -> None:
    target = {"metadata": {"namespace": "a", "name": name}, "target": {"name": node}}
    binding = {"kind": "Binding", **target}
    await world.admin.create(PODS.read_as(dict), binding, "binding")


async def delete(world: World, kind: Kind[Obj], name: str, options: DeleteOptions = NOW) -> None:
    await world.admin.delete(kind, Key("a", name), options)


async def claims(world: World) -> dict[str, Obj]:
    return {
        claim["metadata"]["name"]: claim for claim in (await world.admin.list(CLAIMS, "a")).items
    }


async def get_claim(world: World, name: str = "c") -> Obj | None:
    try:
        return await world.admin.get(CLAIMS, Key("a", name))
    except NotFound:
        return None


async def state(world: World, name: str = "c") -> str:
    """Describe the state of a claim in a word or two."""
    claim = await get_claim(world, name)
    if claim is None:
        return "gone"
    status, metadata = claim["status"], claim["metadata"]
    words = [
        "allocated" if "allocation" in status else "",
        ",".join(item["name"] for item in status.get("reservedFor") or ()),
        "protected" if FINALIZER in metadata.get("finalizers", ()) else "",
        "terminating" if "deletionTimestamp" in metadata else "",
    ]
    return " ".join(filter(None, words)) or "free"


async def recorded(world: World, name: str = "p") -> dict[str, str]:
    """Return the claims that the status of a pod names."""
    pod = await world.admin.get(PODS, Key("a", name))
    entries = pod["status"].get("resourceClaimStatuses") or ()
    return {entry["name"]: entry.get("resourceClaimName", "") for entry in entries}


async def events_of(world: World) -> list[tuple[str, str, str]]:
    items = (await world.admin.list(EVENTS, "a")).items
    return [(e["involvedObject"]["name"], e["reason"], e["message"]) for e in items]
