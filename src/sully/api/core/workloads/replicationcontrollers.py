"""ReplicationControllers: the predecessor of ReplicaSets. Stored; no controller acts on them."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from sully.api.core.checks import Errors, counts
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE, format_labels, plain
from sully.api.core.namespaces import unsupported_label
from sully.api.core.pods.creation.defaults import default_spec
from sully.api.core.workloads.workload import (
    REPLICA_COLUMNS,
    REPLICA_COUNTS,
    SPEC,
    CountedStatusStrategy,
    WorkloadStrategy,
    template_errors,
)
from sully.machinery.fields import FieldError
from sully.machinery.formats.names import dns_subdomain_problems
from sully.machinery.strategy import (
    Column,
    ResourceType,
    Version,
    WriteContext,
)

Obj = dict[str, Any]


class ReplicationControllerStrategy(WorkloadStrategy, frozen=True):
    """Writes to the controller itself."""

    declares_name: ClassVar[bool] = True
    declared: ClassVar[tuple[str, ...]] = ("spec.replicas", "spec.minReadySeconds")

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

    def validate_name(self, name: str) -> Sequence[str]:
        """Check the name as the format that the schema declares."""
        return dns_subdomain_problems(name, unit="bytes")

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check counts, selector and template."""
        spec = obj["spec"]
        if not spec.get("selector"):
            yield SPEC.child("selector").required()
        yield from _template(spec)
        yield from counts(spec, REPLICA_COUNTS, SPEC)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state like a new controller."""
        return self.validate_create(obj, ctx)


class ReplicationControllerStatusStrategy(
    CountedStatusStrategy, ReplicationControllerStrategy, frozen=True
):
    """Writes to the status endpoint."""


def _template(spec: Obj) -> Errors:
    template = spec.get("template")
    if template is None:
        yield SPEC.child("template").required()
        return
    own = template["metadata"].get("labels") or {}
    selector = spec.get("selector") or {}
    selected = all(own.get(key) == value for key, value in selector.items())
    yield from template_errors(template, "ReplicationController", selected=selected)


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
        *REPLICA_COLUMNS,
        AGE,
        *POD_TEMPLATE[:2],
        Column(
            "Selector",
            plain(lambda obj: format_labels(obj["spec"].get("selector"))),
            priority=1,
            description="Labels of the pods.",
        ),
    ),
    selectable={"status.replicas": lambda obj: str(obj["status"].get("replicas", 0))},
    unknown_label=unsupported_label,
)
