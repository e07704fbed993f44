"""StatefulSets: pods with stable names and storage. Stored; no controller creates their pods."""

from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.apps.workloads import APPS, SPEC, WorkloadStrategy
from sully.api.core import generations
from sully.api.core.checks import Errors, dns_label, label_selector, not_negative, same
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE, plain
from sully.api.core.fractions import at_most_all, count_or_percent, is_zero
from sully.api.core.persistentvolumeclaims import claim_spec, default_claim_spec
from sully.api.core.pods.defaults import default_spec
from sully.api.core.pods.validation import validate_template
from sully.machinery import labels
from sully.machinery.fields import FieldError, Path
from sully.machinery.names import dns_label_problems
from sully.machinery.strategy import Column, ResourceType, Version, WriteContext

Obj = dict[str, Any]

_HISTORY = 10
_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_COUNTS = ("replicas", *_PARTS, "observedGeneration", "collisionCount")
_FIXED = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
_RETENTION = ("Retain", "Delete")


class StatefulSetStrategy(WorkloadStrategy):
    """Writes to the stateful set itself."""

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

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start with no pods seen."""
        obj["status"] = {"replicas": 0, "availableReplicas": 0}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change."""
        obj["status"] = old["status"]
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

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
                yield SPEC.child(name).invalid(obj["spec"].get(name), "field is immutable")

    def validate_name(self, name: str) -> Sequence[str]:
        """Require a DNS label: the name becomes a part of the pods' host names."""
        return dns_label_problems(name)


class StatefulSetStatusStrategy(StatefulSetStrategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the counts, and that collisions are only ever added."""
        status, at = obj["status"], Path("status")
        for name in _COUNTS:
            yield from not_negative(status.get(name, 0), at.child(name))
        for name in _PARTS:
            if status.get(name, 0) > status["replicas"]:
                text = "cannot be greater than status.replicas"
                yield at.child(name).invalid(status.get(name, 0), text)
        available = status.get("availableReplicas", 0)
        if available > status.get("readyReplicas", 0):
            text = "cannot be greater than status.readyReplicas"
            yield at.child("availableReplicas").invalid(available, text)
        new, before = status.get("collisionCount"), old["status"].get("collisionCount")
        if before is not None and (new is None or new < before):
            yield at.child("collisionCount").invalid(new or 0, "cannot be decremented")


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
    for name in ("replicas", "minReadySeconds"):
        yield from not_negative(spec.get(name, 0), SPEC.child(name))
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
    selector, at = spec.get("selector"), SPEC.child("selector")
    if selector is None:
        yield at.required()
    else:
        yield from label_selector(selector, at)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield at.invalid(selector, "empty selector is invalid for statefulset")
    try:
        parsed = labels.from_object(selector)
    except labels.SelectorError:
        yield at.invalid(selector, "")
    else:
        yield from _template(spec, parsed, SPEC.child("template"))
    pod, at = spec["template"]["spec"], SPEC.child("template", "spec")
    policy = pod.get("restartPolicy", "")
    if policy != "Always":
        yield at.child("restartPolicy").not_supported(policy, ("Always",))
    if "activeDeadlineSeconds" in pod:
        text = "activeDeadlineSeconds in StatefulSet is not Supported"
        yield at.child("activeDeadlineSeconds").forbidden(text)


def _template(spec: Obj, selector: labels.Selector, at: Path) -> Errors:
    template = spec["template"]
    own = template["metadata"].get("labels")
    if not selector.everything and not selector.matches(own or {}):
        text = "`selector` does not match template `labels`"
        yield at.child("metadata", "labels").invalid(own, text)
    claims = {claim["metadata"].get("name", "") for claim in spec.get("volumeClaimTemplates") or ()}
    others = [v for v in template["spec"].get("volumes") or () if v.get("name") not in claims]
    added = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(claims)
    ]
    # The controller sets host name and subdomain, and adds the claims as volumes.
    pod = {k: v for k, v in template["spec"].items() if k not in ("hostname", "subdomain")}
    yield from validate_template(template | {"spec": pod | {"volumes": added + others}}, at)


def _ready(obj: Obj) -> str:
    return f"{obj['status'].get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


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
        Column("Ready", plain(_ready), description="Ready pods of those desired."),
        AGE,
        *POD_TEMPLATE[:2],
    ),
)
