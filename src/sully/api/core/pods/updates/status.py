"""What controllers and nodes may report about a pod, through its status endpoint."""

from typing import Any

from sully.api.core.checks import IMMUTABLE, Errors, dns_label, dns_subdomain, label_key
from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.api.core.pods.mirrors import validate_same_mirror
from sully.api.core.pods.spec.dns import NOT_AN_ADDRESS, is_address
from sully.api.core.pods.updates.allocated import validate_allocated
from sully.machinery.fields import Path

Obj = dict[str, Any]

_AT = Path("status")
_OWN_CONDITIONS = (POD_SCHEDULED, "Ready", "Initialized")
_BOUND = "may not be set on pods that are already bound to a node"
_NOT_NEGATIVE = "must be a non-negative integer"
_NOT_A_CONTAINER = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_NOT_REQUESTED = (
    "must match the extended resource name of an entry in"
    " spec.initContainers.resources.requests or spec.containers.resources.requests"
)
_NOT_A_CLAIM = "must match the name of an entry in `spec.resourceClaims`"


def validate_status(pod: Obj, old: Obj) -> Errors:
    """Yield everything wrong with a new status."""
    yield from validate_same_mirror(pod, old)
    status, before = pod["status"], old["status"]
    for position, condition in enumerate(status.get("conditions") or ()):
        here = _AT.child("conditions").index(position)
        yield from _observed(condition, here)
        if condition.get("type") not in _OWN_CONDITIONS:
            yield from label_key(condition.get("type", ""), here.child("Type"))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        yield from dns_subdomain(nominated, _AT.child("nominatedNodeName"))
        if old["spec"].get("nodeName"):
            yield _AT.child("nominatedNodeName").forbidden(_BOUND)
    yield from _observed(status, _AT)
    if status.get("qosClass", "") != before.get("qosClass", ""):
        yield _AT.child("qosClass").invalid(status.get("qosClass", ""), IMMUTABLE)
    yield from _restarts(pod, old)
    yield from _claims(pod)
    yield from _extended_claim(pod)
    yield from _addresses(status, before, "podIP")
    yield from _same_address(status, "podIP")
    if status.get("hostIPs"):
        yield from _same_address(status, "hostIP")
        yield from _addresses(status, before, "hostIP")
    yield from validate_allocated(pod)


def _observed(value: Obj, at: Path) -> Errors:
    generation = value.get("observedGeneration", 0)
    if generation < 0:
        yield at.child("observedGeneration").invalid(generation, _NOT_NEGATIVE)


def _restarts(pod: Obj, old: Obj) -> Errors:
    """Check that terminated containers which never restart stay terminated."""
    if old["spec"].get("restartPolicy") == "Always":
        return
    may_fail = old["spec"].get("restartPolicy") == "OnFailure"
    now = {c["name"]: c for c in pod["status"].get("containerStatuses") or ()}
    for position, container in enumerate(old["status"].get("containerStatuses") or ()):
        ended = (container.get("state") or {}).get("terminated")
        if not ended or (may_fail and ended.get("exitCode", 0) != 0):
            continue
        state = (now.get(container["name"]) or container).get("state") or {}
        if "terminated" not in state:
            at = _AT.child("containerStatuses").index(position).child("state")
            yield at.forbidden("may not be transitioned to non-terminated state")


def _claims(pod: Obj) -> Errors:
    known = {claim.get("name") for claim in pod["spec"].get("resourceClaims") or ()}
    seen: set[str] = set()
    for position, claim in enumerate(pod["status"].get("resourceClaimStatuses") or ()):
        here, name = _AT.child("resourceClaimStatuses").index(position), claim.get("name", "")
        if name not in known:
            yield here.child("name").invalid(name, _NOT_A_CLAIM)
        if name in seen:
            yield here.child("name").duplicate(name)
        seen.add(name)
        if "resourceClaimName" in claim:
            yield from dns_subdomain(claim["resourceClaimName"], here.child("resourceClaimName"))


def _extended_claim(pod: Obj) -> Errors:
    """Check the claim that was created for extended resources."""
    claim = pod["status"].get("extendedResourceClaimStatus")
    if claim is None:
        return
    at = _AT.child("extendedResourceClaimStatus")
    mappings, here = claim.get("requestMappings") or [], at.child("requestMappings")
    if not mappings:
        yield here.required("at least one request mapping is required")
    spec = pod["spec"]
    every = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    containers = {container.get("name", ""): container["resources"] for container in every}
    for position, mapping in enumerate(mappings):
        container, resource = (mapping.get(name, "") for name in ("containerName", "resourceName"))
        if container not in containers:
            yield here.index(position).child("containerName").invalid(container, _NOT_A_CONTAINER)
        elif resource not in (containers[container].get("requests") or {}):
            yield here.index(position).child("resourceName").invalid(resource, _NOT_REQUESTED)
        yield from dns_label(mapping.get("requestName", ""), at.child("requestName"))
        if mapping in mappings[:position]:
            for name in ("containerName", "resourceName", "requestName"):
                yield here.index(position).child(name).duplicate(mapping.get(name, ""))
    if claim.get("resourceClaimName"):
        yield from dns_subdomain(claim["resourceClaimName"], at.child("resourceClaimName"))


def _addresses(status: Obj, before: Obj, name: str) -> Errors:
    """Check that there is one address of each family."""
    at, ips = _AT.child(f"{name}s"), [one.get("ip", "") for one in status.get(f"{name}s") or ()]
    known = {one.get("ip", "") for one in before.get(f"{name}s") or ()}
    for position, ip in enumerate(ips):
        if ip not in known and not is_address(ip):
            yield at.index(position).invalid(ip, NOT_AN_ADDRESS)
    if len(ips) > 1:
        bad = next((position for position, ip in enumerate(ips) if not is_address(ip)), None)
        if bad is not None:
            text = f"failed to check for dual stack with error:invalid IP[{bad}]: {ips[bad]}"
            yield at.internal(text)
    families = {":" in ip for ip in ips}
    if len(ips) > 1 and (len(families) < len(ips) or not all(map(is_address, ips))):
        shown = [{"IP": ip} for ip in ips]
        yield at.invalid(shown, "may specify no more than one IP for each IP family")


def _same_address(status: Obj, name: str) -> Errors:
    """Check that the first of the addresses is also in the single field."""
    ips = status.get(f"{name}s")
    if ips and status.get(name, "") != (first := ips[0].get("ip", "")):
        at = _AT.child(f"{name}s").index(0).child("ip")
        yield at.invalid(first, f"must be equal to `{name}`")


def align_addresses(status: Obj) -> None:
    """Make the single address the first of the list; where they differ, the single one counts."""
    one, many = status.get("podIP"), status.get("podIPs")
    if one and (not many or many[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif many and many[0].get("ip"):
        status["podIP"] = many[0]["ip"]


def keep_generations(status: Obj, before: Obj) -> None:
    """Keep observed generations that a client which does not know them left out."""
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    known = {c.get("type"): c for c in reversed(before.get("conditions") or [])}
    for condition in status.get("conditions") or ():
        old = known.get(condition.get("type"), {}).get("observedGeneration")
        if old and not condition.get("observedGeneration"):
            condition["observedGeneration"] = old
