"""Deployments: equal pods that are replaced step by step when their template changes."""

from collections.abc import Iterator
from typing import Any, ClassVar

from sully.api.apps.workloads import (
    APPS,
    READY,
    AppsStrategy,
    default_workload,
    selector_and_template,
)
from sully.api.core import generations
from sully.api.core.checks import Errors, counts, not_negative, same
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE
from sully.api.core.fractions import at_most_all, count_or_percent, is_zero
from sully.api.core.workloads.workload import SPEC, CountedStatusStrategy, count
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Version, WriteContext

Obj = dict[str, Any]

_SHARE = "25%"
_HISTORY = 10
_DEADLINE = 600


class DeploymentStrategy(AppsStrategy, frozen=True):
    """Writes to the deployment itself."""

    new_status: ClassVar[Obj] = {}

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in template, count and the way of rolling out."""
        default_workload(obj)
        spec = obj["spec"]
        rollout = spec["strategy"]
        if not rollout.get("type"):
            rollout["type"] = "RollingUpdate"
        if rollout["type"] == "RollingUpdate":
            steps = rollout.setdefault("rollingUpdate", {})
            for name in ("maxUnavailable", "maxSurge"):
                steps.setdefault(name, _SHARE)
        spec.setdefault("revisionHistoryLimit", _HISTORY)
        spec.setdefault("progressDeadlineSeconds", _DEADLINE)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; annotations count as a change too, for they go to the replica sets."""
        super().prepare_update(obj, old, ctx)
        noted = (obj["metadata"].get("annotations"), old["metadata"].get("annotations"))
        changed = generations.spec_changed(obj, old) or not same(*noted)
        generations.follow(obj, old, bump=changed)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check counts, selector, template and the way of rolling out."""
        spec = obj["spec"]
        yield from not_negative(spec.get("replicas", 0), SPEC.child("replicas"))
        yield from selector_and_template(spec)
        yield from _rollout(spec["strategy"], SPEC.child("strategy"))
        seconds_and_history = ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
        yield from counts(spec, seconds_and_history, SPEC)
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            text = "must be greater than minReadySeconds"
            yield SPEC.child("progressDeadlineSeconds").invalid(deadline, text)


def _rollout(rollout: Obj, at: Path) -> Errors:
    kind, steps = rollout.get("type", ""), rollout.get("rollingUpdate")
    if kind == "Recreate":
        if steps is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield at.child("rollingUpdate").forbidden(text)
    elif kind == "RollingUpdate":
        yield from _steps(steps or {}, at.child("rollingUpdate"))
    else:
        yield at.not_supported(_go_strategy(rollout), ("Recreate", "RollingUpdate"))


def _go_strategy(rollout: Obj) -> Obj:
    """Return a strategy as Go writes its internal type."""
    steps = rollout.get("rollingUpdate")
    shown = steps and {
        name[0].upper() + name[1:]: steps.get(name, 0) for name in ("maxUnavailable", "maxSurge")
    }
    return {"Type": rollout.get("type", ""), "RollingUpdate": shown}


def _steps(steps: Obj, at: Path) -> Errors:
    below, above = steps.get("maxUnavailable", 0), steps.get("maxSurge", 0)
    yield from count_or_percent(below, at.child("maxUnavailable"))
    yield from count_or_percent(above, at.child("maxSurge"))
    if is_zero(below) and is_zero(above):
        yield at.child("maxUnavailable").invalid(below, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(below, at.child("maxUnavailable"))


class DeploymentStatusStrategy(CountedStatusStrategy, DeploymentStrategy, frozen=True):
    """Writes to the status endpoint."""

    parts: ClassVar[tuple[str, ...]] = ("updatedReplicas", "readyReplicas", "availableReplicas")
    generation_first = True
    others: ClassVar[tuple[str, ...]] = (
        "observedGeneration",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep spec and labels."""
        generations.keep_spec(obj, old)
        obj["metadata"].pop("labels", None)
        if "labels" in old["metadata"]:
            obj["metadata"]["labels"] = old["metadata"]["labels"]


DEPLOYMENTS = ResourceType(
    group="apps",
    kind="Deployment",
    plural="deployments",
    singular="deployment",
    namespaced=True,
    versions=(Version("v1", APPS),),
    strategy=DeploymentStrategy(reset=(("status",),)),
    status=DeploymentStatusStrategy(reset=(("spec",), ("metadata", "labels"))),
    scale=True,
    short_names=("deploy",),
    categories=("all",),
    columns=(
        NAME,
        READY,
        Column(
            "Up-to-date", count("status", "updatedReplicas"), description="Pods of this template."
        ),
        Column(
            "Available", count("status", "availableReplicas"), description="Pods that can be used."
        ),
        AGE,
        *POD_TEMPLATE,
    ),
)
