"""StatefulSets: pods with stable names and storage."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from sully.api.apps.workloads import APPS, READY, matching_selector
from sully.api.core.checks import (
    Errors,
    counts,
    dns_label,
    not_negative,
    same,
    selector_in_order,
)
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE
from sully.api.core.fractions import at_most_all, count_or_percent, is_zero
from sully.api.core.pods.creation.defaults import default_spec
from sully.api.core.volumes.persistentvolumeclaims import claim_spec, default_claim_spec
from sully.api.core.workloads.workload import (
    REPLICA_COUNTS,
    SPEC,
    CountedStatusStrategy,
    WorkloadStrategy,
    runs_always,
    template_errors,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_label_problems
from sully.machinery.strategy import ResourceType, Version, WriteContext

Obj = dict[str, Any]

_HISTORY = 10
_FIXED = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
_RETENTION = ("Retain", "Delete")


class StatefulSetStrategy(WorkloadStrategy, frozen=True):
    """Writes to the stateful set itself."""

    new_status: ClassVar[Obj] = {"replicas": 0, "availableReplicas": 0}

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in template, count, policies and the way of updating."""
        spec = obj["spec"]
        default_spec(spec["template"]["spec"])
        spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
        update = spec["updateStrategy"]
        if not update.get("type"):
            update["type"] = "RollingUpdate"
            update.setdefault("rollingUpdate", {})
        if update["type"] == "RollingUpdate" and "rollingUpdate" in update:
            update["rollingUpdate"].setdefault("partition", 0)
            update["rollingUpdate"].setdefault("maxUnavailable", 1)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for name in ("whenDeleted", "whenScaled"):
            retention[name] = retention.get(name) or "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", _HISTORY)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            default_claim_spec(claim["spec"])
            claim["status"].setdefault("phase", "Pending")

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about the template, and of a history without an end."""
        yield from super().warnings(obj, old, ctx)
        if obj["spec"].get("revisionHistoryLimit", 0) < 0:
            yield (
                "spec.revisionHistoryLimit: a negative value retains all historical revisions;"
                " a value >= 0 is recommended"
            )

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check policies, claims, counts, selector and template."""
        spec = obj["spec"]
        yield from _policies(spec)
        for position, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            at = SPEC.child("volumeClaimTemplates").index(position)
            yield from claim_spec(claim["spec"], at.child("spec"))
        yield from _numbers(spec)
        if spec.get("serviceName"):
            yield from dns_label(spec["serviceName"], SPEC.child("serviceName"))
        yield from _pods(spec)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and what must stay."""
        yield from _policies(obj["spec"])
        yield from _numbers(obj["spec"])
        yield from _pods(obj["spec"])
        for name in _FIXED:
            if not same(obj["spec"].get(name), old["spec"].get(name)):
                value = obj["spec"].get(name)
                shown = selector_in_order(value) if name == "selector" else value
                yield SPEC.child(name).invalid(shown, "field is immutable")

    def validate_name(self, name: str) -> Sequence[str]:
        """Require a DNS label: the name becomes a part of the pods' host names."""
        return dns_label_problems(name)


class StatefulSetStatusStrategy(CountedStatusStrategy, StatefulSetStrategy, frozen=True):
    """Writes to the status endpoint."""

    parts: ClassVar[tuple[str, ...]] = (
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    )
    others: ClassVar[tuple[str, ...]] = ("observedGeneration", "collisionCount")
    ready = "status.readyReplicas"


def _policies(spec: Obj) -> Errors:
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        at = SPEC.child("podManagementPolicy")
        yield at.invalid(policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _update(spec["updateStrategy"], SPEC.child("updateStrategy"))
    at = SPEC.child("persistentVolumeClaimRetentionPolicy")
    for name, value in spec["persistentVolumeClaimRetentionPolicy"].items():
        if value not in _RETENTION:
            yield at.child(name).not_supported(value, _RETENTION)


def _numbers(spec: Obj) -> Errors:
    yield from counts(spec, REPLICA_COUNTS, SPEC)
    start = (spec.get("ordinals") or {}).get("start", 0)
    yield from not_negative(start, SPEC.child("ordinals.start"))


def _update(update: Obj, at: Path) -> Errors:
    rolling = update.get("rollingUpdate")
    if update["type"] == "OnDelete":
        if rolling is not None:
            text = "only allowed for updateStrategy 'RollingUpdate'"
            yield at.child("rollingUpdate").invalid(_shown(rolling), text)
    elif update["type"] == "RollingUpdate":
        if rolling is not None:
            here = at.child("rollingUpdate")
            yield from not_negative(rolling["partition"], here.child("partition"))
            yield from _unavailable(rolling["maxUnavailable"], here.child("maxUnavailable"))
    else:
        # `Recreate` belongs to a feature that Kubernetes has off, and that is not supported here.
        shown = {"Type": update["type"], "RollingUpdate": rolling and _shown(rolling)}
        yield at.invalid(shown, "must be 'RollingUpdate' or 'OnDelete'")


def _shown(rolling: Obj) -> Obj:
    """Show the settings as Kubernetes does, with the names of its own types."""
    return {
        "Partition": rolling.get("partition", 0),
        "MaxUnavailable": rolling.get("maxUnavailable"),
    }


def _unavailable(value: int | str, at: Path) -> Errors:
    yield from count_or_percent(value, at)
    if is_zero(value):
        yield at.invalid(value, "cannot be 0")
    yield from at_most_all(value, at)


def _pods(spec: Obj) -> Errors:
    selected = yield from matching_selector(spec, "statefulset", unreadable="")
    if selected is None:
        yield from runs_always(spec["template"]["spec"], "StatefulSet")
    else:
        yield from template_errors(_completed(spec), "StatefulSet", selected=selected)


def _completed(spec: Obj) -> Obj:
    """Return the template as pods get it, with claims as volumes.

    The controller also sets host name and subdomain, so those of the template do not count.
    """
    template = spec["template"]
    claims = {claim["metadata"].get("name", "") for claim in spec.get("volumeClaimTemplates") or ()}
    others = [v for v in template["spec"].get("volumes") or () if v.get("name") not in claims]
    added = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(claims)
    ]
    pod = {k: v for k, v in template["spec"].items() if k not in ("hostname", "subdomain")}
    return {**template, "spec": pod | {"volumes": added + others}}


STATEFUL_SETS = ResourceType(
    group="apps",
    kind="StatefulSet",
    plural="statefulsets",
    singular="statefulset",
    namespaced=True,
    versions=(Version("v1", APPS),),
    strategy=StatefulSetStrategy(reset=(("status",),)),
    status=StatefulSetStatusStrategy(reset=(("spec",),)),
    scale=True,
    short_names=("sts",),
    categories=("all",),
    columns=(
        NAME,
        READY,
        AGE,
        *POD_TEMPLATE[:2],
    ),
)
