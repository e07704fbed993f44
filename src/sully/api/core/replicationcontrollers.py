"""ReplicationControllers: the predecessor of ReplicaSets. Stored; no controller acts on them."""

from collections.abc import Iterator
from typing import Any

from sully.api.core import generations
from sully.api.core.checks import Errors, not_negative
from sully.api.core.columns import AGE, NAME, NONE, POD_TEMPLATE, plain
from sully.api.core.namespaces import unsupported_label
from sully.api.core.pods.defaults import default_spec
from sully.api.core.pods.validation import validate_template
from sully.api.core.pods.warnings import spec_warnings
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

SPEC = Path("spec")
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_COUNTS = ("replicas", *_PARTS, "observedGeneration")


class ReplicationControllerStrategy(Strategy):
    """Writes to the controller itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the template, and take selector and labels from it."""
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        template = spec.get("template")
        if template is None:
            return
        default_spec(template["spec"])
        own = template["metadata"].get("labels")
        if own:
            if not spec.get("selector"):
                spec["selector"] = dict(own)
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(own)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start with no pods seen."""
        obj["status"] = {"replicas": 0}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change."""
        obj["status"] = old["status"]
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check counts, selector and template."""
        spec = obj["spec"]
        if not spec.get("selector"):
            yield SPEC.child("selector").required()
        yield from _template(spec)
        for name in ("replicas", "minReadySeconds"):
            yield from not_negative(spec.get(name, 0), SPEC.child(name))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state like a new controller."""
        return self.validate_create(obj, ctx)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about the template, when it is new or something else in the spec is."""
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            at = SPEC.child("template", "spec")
            yield from spec_warnings(obj["spec"]["template"]["spec"], at)


class ReplicationControllerStatusStrategy(ReplicationControllerStrategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the counts."""
        status, at = obj["status"], Path("status")
        for name in _COUNTS:
            yield from not_negative(status.get(name, 0), at.child(name))
        for name in _PARTS:
            if status.get(name, 0) > status["replicas"]:
                text = "cannot be greater than status.replicas"
                yield at.child(name).invalid(status.get(name, 0), text)
        available = status.get("availableReplicas", 0)
        if available > status.get("readyReplicas", 0):
            text = "cannot be greater than readyReplicas"
            yield at.child("availableReplicas").invalid(available, text)


def _template(spec: Obj) -> Errors:
    template, at = spec.get("template"), SPEC.child("template")
    if template is None:
        yield at.required()
        return
    own = template["metadata"].get("labels") or {}
    if any(own.get(key) != value for key, value in (spec.get("selector") or {}).items()):
        text = "`selector` does not match template `labels`"
        yield at.child("metadata", "labels").invalid(own or None, text)
    yield from validate_template(template, at)
    policy = template["spec"].get("restartPolicy", "")
    if policy != "Always":
        yield at.child("spec", "restartPolicy").not_supported(policy, ("Always",))
    if "activeDeadlineSeconds" in template["spec"]:
        text = "activeDeadlineSeconds in ReplicationController is not Supported"
        yield at.child("spec", "activeDeadlineSeconds").forbidden(text)


def _count(part: str, name: str) -> Any:
    return plain(lambda obj: obj[part].get(name, 0))


def _selector(obj: Obj) -> str:
    selector = obj["spec"].get("selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or NONE


REPLICATION_CONTROLLERS = ResourceType(
    group="",
    kind="ReplicationController",
    plural="replicationcontrollers",
    singular="replicationcontroller",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1"),),
    strategy=ReplicationControllerStrategy(reset=(("status",),)),
    status=ReplicationControllerStatusStrategy(reset=(("spec",),)),
    scale=True,
    short_names=("rc",),
    categories=("all",),
    columns=(
        NAME,
        Column("Desired", _count("spec", "replicas"), type="integer", description="Desired pods."),
        Column("Current", _count("status", "replicas"), type="integer", description="All pods."),
        Column(
            "Ready", _count("status", "readyReplicas"), type="integer", description="Ready pods."
        ),
        AGE,
        *POD_TEMPLATE[:2],
        Column("Selector", plain(_selector), priority=1, description="Labels of the pods."),
    ),
    selectable={"status.replicas": lambda obj: str(obj["status"].get("replicas", 0))},
    unknown_label=unsupported_label,
)
