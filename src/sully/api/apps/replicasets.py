"""ReplicaSets: a number of equal pods."""

from collections.abc import Iterator
from typing import Any

from sully.api.apps.workloads import (
    APPS,
    SPEC,
    WorkloadStrategy,
    counts,
    default_workload,
    selector_and_template,
    status_count,
)
from sully.api.core import generations
from sully.api.core.checks import not_negative
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE, plain
from sully.machinery.fields import FieldError
from sully.machinery.strategy import Column, ResourceType, Version, WriteContext

Obj = dict[str, Any]

_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_COUNTS = ("replicas", *_PARTS, "observedGeneration")


class ReplicaSetStrategy(WorkloadStrategy):
    """Writes to the replica set itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the template and the count."""
        default_workload(obj)

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
        yield from not_negative(spec.get("replicas", 0), SPEC.child("replicas"))
        yield from not_negative(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
        yield from selector_and_template(spec)


class ReplicaSetStatusStrategy(ReplicaSetStrategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the counts."""
        return counts(obj["status"], _COUNTS, _PARTS)


def _label(_group: str, version: str, kind: str, label: str) -> str:
    return f"field label not supported for apps{version}.{kind}: {label}"


REPLICA_SETS = ResourceType(
    group="apps",
    kind="ReplicaSet",
    plural="replicasets",
    singular="replicaset",
    namespaced=True,
    versions=(Version("v1", APPS),),
    strategy=ReplicaSetStrategy(reset=(("status",),)),
    status=ReplicaSetStatusStrategy(reset=(("spec",),)),
    scale=True,
    short_names=("rs",),
    categories=("all",),
    columns=(
        NAME,
        Column(
            "Desired",
            plain(lambda obj: obj["spec"].get("replicas", 0)),
            type="integer",
            description="Desired pods.",
        ),
        Column("Current", status_count("replicas"), type="integer", description="Current pods."),
        Column("Ready", status_count("readyReplicas"), type="integer", description="Pods ready."),
        AGE,
        *POD_TEMPLATE,
    ),
    selectable={"status.replicas": lambda obj: str(obj["status"].get("replicas", 0))},
    unknown_label=_label,
)
