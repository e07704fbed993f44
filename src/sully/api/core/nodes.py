"""Nodes: the machines that pods run on, as kubelets (or simulated nodes) report them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.core.amounts import amounts, round_up
from sully.api.core.avoided_pods import validate_avoided_pods
from sully.api.core.checks import same
from sully.api.core.columns import AGE, NAME, NONE, UNKNOWN, plain
from sully.api.core.namespaces import unsupported_label
from sully.api.core.pods.spec.dns import NOT_A_CIDR
from sully.api.core.taints import taints
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.addresses import is_cidr
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_CIDR_SET = 'node updates may not change podCIDR except from "" to valid'
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_TEXT = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g.,"
    " MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_ONCE = "field cannot be modified once set"


class NodeStrategy(Strategy, frozen=True):
    """Writes to nodes. A node may be created with a status: kubelets register that way."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Default allocatable to the capacity; align both CIDR fields."""
        status = obj["status"]
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        for name in ("capacity", "allocatable"):
            round_up(status.get(name) or {})
        _align_cidrs(obj["spec"])

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]
        _drop_disabled(obj["spec"], old["spec"])

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Remove what only older and newer servers have."""
        _drop_disabled(obj["spec"], {})
        obj["status"].pop("config", None)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn of fields that nothing reads."""
        if obj["spec"].get("configSource") is not None:
            yield "spec.configSource: the feature is removed"
        if obj["spec"].get("externalID"):
            yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check annotations, taints, amounts and addresses."""
        yield from validate_avoided_pods(obj)
        # Kubernetes reports the path metadata.
        yield from taints(obj["spec"].get("taints") or [], Path("metadata.taints"))
        yield from _resources(obj)
        yield from _declared_features(obj["status"].get("declaredFeatures") or ())
        yield from _cidrs(obj["spec"].get("podCIDRs") or [])

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state like a new node, then what may be set only once."""
        yield from self.validate_create(obj, ctx)
        yield from _changed(obj, old)


def _changed(obj: Obj, old: Obj) -> Iterator[FieldError]:
    yield from validate_avoided_pods(obj)
    yield from _resources(obj)
    yield from _declared_features(obj["status"].get("declaredFeatures") or ())
    yield from _addresses(obj)
    yield from _set_once(obj["spec"], old["spec"])
    yield from taints(obj["spec"].get("taints") or [], Path("metadata.taints"))
    if obj["spec"].get("externalID", "") != old["spec"].get("externalID", ""):
        yield Path("spec.externalID").forbidden("may not be updated")


def _drop_disabled(spec: Obj, old: Obj) -> None:
    """Remove the configuration of kubelets, which Kubernetes no longer distributes.

    How pods are preempted for a resize is behind a gate that is off.
    """
    for name in ("configSource", "podPreemptionPolicy"):
        if name not in old:
            spec.pop(name, None)


class NodeStatusStrategy(NodeStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        if "config" not in old["status"]:
            obj["status"].pop("config", None)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check what a change of the status can touch."""
        return _changed(obj, old)


def _align_cidrs(spec: Obj) -> None:
    one, many = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not many or many[0] != one):
        # Clients that know only the older field must be able to change it.
        spec["podCIDRs"] = [one]
    elif many:
        spec["podCIDR"] = many[0]


def _resources(obj: Obj) -> Iterator[FieldError]:
    for name in ("capacity", "allocatable"):
        yield from amounts(obj["status"].get(name) or {}, Path("status").child(name))


def _addresses(obj: Obj) -> Iterator[FieldError]:
    seen: list[Obj] = []
    for position, address in enumerate(obj["status"].get("addresses") or ()):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            yield Path("status.addresses").index(position).duplicate(shown)
        seen.append(address)


def _set_once(spec: Obj, old: Obj) -> Iterator[FieldError]:
    if old.get("podCIDRs") and not same(spec.get("podCIDRs"), old["podCIDRs"]):
        yield Path("spec.podCIDRs").forbidden(_CIDR_SET)
    if old.get("providerID") and spec.get("providerID") != old["providerID"]:
        text = _ONCE if spec.get("providerID") else "field cannot be cleared once set"
        yield Path("spec.providerID").invalid(None, text)


def _cidrs(values: list[str]) -> Iterator[FieldError]:
    at = Path("spec.podCIDRs")
    for position, value in enumerate(values):
        if not is_cidr(value):
            yield at.index(position).invalid(value, NOT_A_CIDR)
    families = [":" in value for value in values]
    if len(set(families)) < len(families):
        yield at.invalid(values, "may specify no more than one CIDR for each IP family")


def _declared_features(names: Sequence[str]) -> Iterator[FieldError]:
    at, before = Path("status.declaredFeatures"), ""
    for position, name in enumerate(names):
        here = at.index(position)
        if position and name == before:
            yield here.duplicate(name)
        elif name < before:
            yield here.invalid(name, "list must be sorted alphabetically")
        if not _FEATURE.fullmatch(name):
            yield here.invalid(name, f"invalid feature name {quote(name)}: {_FEATURE_TEXT}")
        before = name


def _status(obj: Obj) -> str:
    conditions = obj["status"].get("conditions") or ()
    ready = [c.get("status") == "True" for c in conditions if c.get("type") == "Ready"]
    statuses = ["Unknown"] if not ready else ["Ready" if ready[-1] else "NotReady"]
    if obj["spec"].get("unschedulable"):
        statuses.append("SchedulingDisabled")
    return ",".join(statuses)


def _roles(obj: Obj) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> Any:
    def read(obj: Obj) -> str:
        for address in obj["status"].get("addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address", ""))
        return NONE

    return plain(read)


def _kernel(obj: Obj) -> str:
    info = obj["status"]["nodeInfo"]
    version = info.get("kernelVersion") or UNKNOWN
    return f"{version} ({info['architecture']})" if info.get("architecture") else str(version)


def _info(name: str, otherwise: str = UNKNOWN) -> Any:
    return plain(lambda obj: obj["status"]["nodeInfo"].get(name) or otherwise)


NODES = ResourceType(
    group="",
    kind="Node",
    plural="nodes",
    singular="node",
    namespaced=False,
    versions=(Version("v1", "io.k8s.api.core.v1"),),
    strategy=NodeStrategy(reset=(("status",),)),
    status=NodeStatusStrategy(reset=(("spec",),)),
    refused=("proxy",),
    short_names=("no",),
    columns=(
        NAME,
        Column(
            "Status",
            plain(_status),
            description="Whether it is ready and accepts pods.",
        ),
        Column("Roles", plain(_roles), description="Roles of the node, from its labels."),
        AGE,
        Column("Version", _info("kubeletVersion", ""), description="Version of the kubelet."),
        Column("Internal-IP", _address("InternalIP"), priority=1, description="Inner address."),
        Column("External-IP", _address("ExternalIP"), priority=1, description="Outer address."),
        Column("OS-Image", _info("osImage"), priority=1, description="Operating system."),
        Column("Kernel-Version", plain(_kernel), priority=1, description="Its kernel."),
        Column(
            "Container-Runtime",
            _info("containerRuntimeVersion"),
            priority=1,
            description="What runs the containers.",
        ),
    ),
    selectable={
        "spec.unschedulable": lambda obj: "true" if obj["spec"].get("unschedulable") else "false",
    },
    unknown_label=unsupported_label,
)
