"""ReplicaSets: a number of equal pods."""

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.apps.workloads import (
    APPS,
    SPEC,
    counts,
    default_workload,
    selector_and_template,
    template_warnings,
)
from sully.api.core import generations
from sully.api.core.checks import not_negative, unchanged
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE, plain
from sully.machinery.fields import FieldError
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_COUNTS = ("replicas", *_PARTS, "observedGeneration")


class ReplicaSetStrategy(Strategy):
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

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that the selector stays."""
        yield from self.validate_create(obj, ctx)
        new, before = obj["spec"].get("selector"), old["spec"].get("selector")
        yield from unchanged(new, before, SPEC.child("selector"))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn about the template."""
        return template_warnings(obj, old)


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


def _status(name: str) -> Any:
    return plain(lambda obj: obj["status"].get(name, 0))


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
            description="Pods wanted.",
        ),
        Column("Current", _status("replicas"), type="integer", description="Pods there are."),
        Column("Ready", _status("readyReplicas"), type="integer", description="Pods ready."),
        AGE,
        *POD_TEMPLATE,
    ),
    selectable={"status.replicas": lambda obj: str(obj["status"].get("replicas", 0))},
    unknown_label=_label,
)
