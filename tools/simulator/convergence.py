"""What must be true some time after the last fault: nothing is forgotten, stale or stuck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from simulator import fleet
from simulator.invariants import RECORDS, Invariants
from simulator.judgement import BLOCKING, BUDGETED, CLAIMS, causes, held, taints, tolerates
from simulator.knowledge import PODS
from simulator.truth import Truth
from sully.client.objects import key_of
from sully.controllers.framework.manager import Manager

Obj = dict[str, Any]


def unsettled(
    truth: Truth, invariants: Invariants, managers: Iterable[Manager], now: datetime
) -> Iterator[str]:
    """Yield what is not as it must become."""
    yield from _stale(truth, managers)
    yield from _records(truth, invariants)
    for pod in truth.objects[PODS].values():
        yield from _pod(truth, pod, now)
    yield from _claims(truth)


def _stale(truth: Truth, managers: Iterable[Manager]) -> Iterator[str]:
    for manager in managers:
        for (kind, selector), informer in manager._informers.items():
            resource = f"{kind.group}/{kind.plural}" if kind.group else kind.plural
            cached = {
                (key_of(obj).namespace, key_of(obj).name): obj.metadata.resource_version
                if not kind.untyped
                else obj["metadata"]["resourceVersion"]
                for obj in informer.values()
            }
            stored = truth.versions(resource)
            wrong = {key for key, version in cached.items() if stored.get(key) != version}
            if not (selector.namespace or selector.label_selector or selector.field_selector):
                wrong |= stored.keys() - cached.keys()
            if wrong:
                yield f"the cache of {kind.plural} is stale: {sorted(wrong)[:3]}"


def _records(truth: Truth, invariants: Invariants) -> Iterator[str]:
    recorded = {name for _, name in truth.objects[RECORDS]}
    for uid, eviction in invariants.evictions.items():
        if uid not in recorded:
            yield f"there is no record of the eviction of {eviction.name}"
    # Who evicts a pod in the moment in which another deletes it gets the same answer as ever.
    for uid in recorded - invariants.evictions.keys() - invariants.accepted:
        yield f"there is a record of the pod {uid}, which was not evicted"


def _pod(truth: Truth, pod: Obj, now: datetime) -> Iterator[str]:
    name = pod["metadata"]["name"]
    if "deletionTimestamp" in pod["metadata"]:
        yield f"{name} is still terminating"
        return
    due = [cause for cause in causes(truth.objects, pod) if not cause.paused and cause.due <= now]
    if any(cause.effect != BUDGETED for cause in due):
        yield f"{name} was not evicted: {due}"
    if pod["spec"].get("nodeName"):
        if (pod.get("status") or {}).get("phase") != "Running":
            yield f"{name} is bound and does not run"
        return
    if _fits(truth, pod):
        yield f"{name} is pending, but there is a device for it"


def _fits(truth: Truth, pod: Obj) -> bool:
    """Report whether a pod that needs one device could get one."""
    expected = _template(pod)
    if expected not in fleet.TOLERATIONS or list(held(truth.objects, pod)):
        return False
    tolerations = fleet.claim_spec(expected)["devices"]["requests"][0]["exactly"]["tolerations"]
    used = {
        (result["driver"], result["pool"], result["device"])
        for claim in truth.objects[CLAIMS].values()
        for result in (
            ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
        ).get("results")
        or ()
    }
    for slice_ in truth.objects["resource.k8s.io/resourceslices"].values():
        spec = slice_["spec"]
        for listed in spec.get("devices") or ():
            device = (spec["driver"], spec["pool"]["name"], listed["name"])
            if device[0] != fleet.DRIVER or device in used:
                continue
            blocking = [
                taint
                for _, taint, _ in taints(truth.objects, device)
                if taint["effect"] in BLOCKING and not any(tolerates(t, taint) for t in tolerations)
            ]
            # A toleration that expires prevents scheduling from then on.
            limited = any("tolerationSeconds" in toleration for toleration in tolerations)
            if not blocking and not (limited and list(taints(truth.objects, device))):
                return True
    return False


def _template(pod: Obj) -> str:
    entries: list[Obj] = pod["spec"].get("resourceClaims") or [{}]
    return str(entries[0].get("resourceClaimTemplateName") or "")


def _claims(truth: Truth) -> Iterator[str]:
    pods = {pod["metadata"]["uid"] for pod in truth.objects[PODS].values()}
    for claim in truth.objects[CLAIMS].values():
        for user in (claim.get("status") or {}).get("reservedFor") or ():
            if user["uid"] not in pods:
                yield f"{claim['metadata']['name']} is reserved for a pod that is gone"
