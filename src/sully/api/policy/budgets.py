"""PodDisruptionBudgets: how many pods may be unavailable at the same time, voluntarily."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sully.api.core import generations
from sully.api.core.checks import (
    as_go,
    label_selector,
    not_negative,
    one_of,
    selector_in_order,
)
from sully.api.core.columns import AGE, NAME, plain
from sully.api.core.fractions import at_most_all, count_or_percent
from sully.api.policy import POLICY
from sully.api.resource.validation.conditions import validate_conditions
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import path_segment_problems
from sully.machinery.meta import Condition
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]


_LIMITS = ("minAvailable", "maxUnavailable")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class BudgetStrategy(Strategy, frozen=True):
    """Writes to the budget itself."""

    def validate_name(self, name: str) -> Sequence[str]:
        """Allow whatever is allowed in a path: Kubernetes checks no more."""
        return path_segment_problems(name)

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Allow names without a domain: Kubernetes checks them for its older kinds only."""
        return ()

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start with nothing allowed: the controller has not counted yet."""
        obj["status"] = dict.fromkeys(_COUNTS, 0)
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change."""
        obj["status"] = old["status"]
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the limits and the selector."""
        spec, at = obj["spec"], Path("spec")
        if all(name in spec for name in _LIMITS):
            yield at.invalid(_shown(spec), "minAvailable and maxUnavailable cannot be both set")
        for name in _LIMITS:
            if name in spec:
                yield from count_or_percent(spec[name], at.child(name))
                yield from at_most_all(spec[name], at.child(name))
        yield from label_selector(spec.get("selector"), at.child("selector"))
        if "unhealthyPodEvictionPolicy" in spec:
            policy = spec["unhealthyPodEvictionPolicy"]
            yield from one_of(policy, _POLICIES, at.child("unhealthyPodEvictionPolicy"))

    def validates_metadata(self) -> bool:
        """Leave the metadata for later, as Kubernetes does for budgets."""
        return False

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state like a new budget."""
        return self.validate_create(obj, ctx)


def _shown(spec: Obj) -> Obj:
    names = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
    return as_go(spec, *names) | {"Selector": selector_in_order(spec.get("selector"))}


class BudgetStatusStrategy(BudgetStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        generations.keep_spec(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the conditions and the counts."""
        conditions = msgspec.convert(obj["status"].get("conditions") or [], list[Condition])
        yield from validate_conditions(conditions, Path("status.conditions"))
        for name in _COUNTS:
            yield from not_negative(obj["status"].get(name, 0), Path("status").child(name))


def _limit(name: str) -> Any:
    return plain(lambda obj: str(obj["spec"].get(name, "N/A")))


BUDGETS = ResourceType(
    group="policy",
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
    singular="poddisruptionbudget",
    namespaced=True,
    versions=(Version("v1", POLICY, unconditional_update=False),),
    strategy=BudgetStrategy(reset=(("status",),)),
    status=BudgetStatusStrategy(reset=(("spec",),)),
    short_names=("pdb",),
    columns=(
        NAME,
        Column("Min Available", _limit("minAvailable"), description="Pods that must be available."),
        Column(
            "Max Unavailable", _limit("maxUnavailable"), description="Pods that may be unavailable."
        ),
        Column(
            "Allowed Disruptions",
            plain(lambda obj: obj["status"].get("disruptionsAllowed", 0)),
            type="integer",
            description="Evictions that are currently allowed.",
        ),
        AGE,
    ),
)
