"""DaemonSets: one pod on each matching node."""

from collections.abc import Iterator
from typing import Any, ClassVar

from sully.api.apps.workloads import APPS, selects
from sully.api.core.checks import (
    Errors,
    as_go,
    label_selector,
    not_negative,
    same,
    same_selector,
)
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE, format_labels, plain
from sully.api.core.fractions import at_most_all, count_or_percent, is_zero
from sully.api.core.pods.creation.defaults import default_spec
from sully.api.core.pods.spec.validation import validate_template
from sully.api.core.workloads.workload import (
    SPEC,
    TEMPLATE,
    CountedStatusStrategy,
    WorkloadStrategy,
    count,
    runs_always,
    template_labels,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.integers import parse_natural
from sully.machinery.strategy import Column, ResourceType, Version, WriteContext

Obj = dict[str, Any]

_ROLLING = ("maxUnavailable", "maxSurge")
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_HISTORY = 10
_NUMBERS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


class DaemonSetStrategy(WorkloadStrategy, frozen=True):
    """Writes to the DaemonSet itself."""

    new_status: ClassVar[Obj] = dict.fromkeys(_NUMBERS, 0)

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the template and how pods are replaced."""
        spec = obj["spec"]
        default_spec(spec["template"]["spec"])
        update = spec["updateStrategy"]
        update["type"] = update.get("type") or "RollingUpdate"
        if update["type"] == "RollingUpdate":
            rolling = update.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", _HISTORY)
        # The writer of the object owns the annotation, also if it does not send it.
        if TEMPLATE_GENERATION not in (obj["metadata"].get("annotations") or {}):
            _note_template(obj, 0)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start with no pods seen, and the first generation of the template."""
        super().prepare_create(obj, ctx)
        _note_template(obj, 1)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change, and that of the template."""
        super().prepare_update(obj, old, ctx)
        changed = not same(obj["spec"]["template"], old["spec"]["template"])
        _note_template(obj, template_generation(old) + changed)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that the selector stays, and the new state."""
        yield from same_selector(obj["spec"], old["spec"])
        yield from self.validate_create(obj, ctx)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check selector, template and how pods are replaced."""
        spec = obj["spec"]
        selector = spec.get("selector")
        yield from label_selector(selector, SPEC.child("selector"))
        template = spec["template"]
        yield from template_labels(template, selected=selects(spec) is not False)
        if selector is not None and not any(selector.values()):
            text = "empty selector is invalid for daemonset"
            yield SPEC.child("selector").invalid(selector, text)
        yield from validate_template(template, TEMPLATE)
        yield from runs_always(template["spec"], "DaemonSet")
        yield from not_negative(spec.get("minReadySeconds", 0), SPEC.child("minReadySeconds"))
        yield from _update(spec["updateStrategy"], SPEC.child("updateStrategy"))
        limit = spec.get("revisionHistoryLimit", 0)
        yield from not_negative(limit, SPEC.child("revisionHistoryLimit"))


def template_generation(obj: Obj) -> int:
    """Return how often the template was changed, from its annotation."""
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return parse_natural(text) or 0


def _note_template(obj: Obj, number: int) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = annotations | {TEMPLATE_GENERATION: str(number)}


def _update(update: Obj, at: Path) -> Errors:
    if update["type"] == "RollingUpdate":
        yield from _rolling(update["rollingUpdate"], at.child("rollingUpdate"))
    elif update["type"] != "OnDelete":
        rolling = update.get("rollingUpdate")
        shown = {
            "Type": update["type"],
            "RollingUpdate": rolling
            and as_go(
                {name: rolling.get(name, 0) for name in _ROLLING}, "MaxUnavailable", "MaxSurge"
            ),
        }
        yield at.not_supported(shown, ("RollingUpdate", "OnDelete"))


def _rolling(rolling: Obj, at: Path) -> Errors:
    for check in (count_or_percent, at_most_all):
        for name in _ROLLING:
            yield from check(rolling[name], at.child(name))
    unavailable, surge = (not is_zero(rolling[name]) for name in _ROLLING)
    if unavailable and surge:
        text = "may not be set when maxUnavailable is non-zero"
        yield at.child("maxSurge").invalid(rolling["maxSurge"], text)
    if not unavailable and not surge:
        yield at.child("maxUnavailable").required("cannot be 0 when maxSurge is 0")


class DaemonSetStatusStrategy(CountedStatusStrategy, DaemonSetStrategy, frozen=True):
    """Writes to the status endpoint."""

    whole: ClassVar[tuple[str, ...]] = _NUMBERS
    parts: ClassVar[tuple[str, ...]] = ()
    others: ClassVar[tuple[str, ...]] = (
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )


def _column(title: str, name: str, text: str) -> Column:
    return Column(title, count("status", name), type="integer", description=text)


def _nodes(obj: Obj) -> str:
    return format_labels(obj["spec"]["template"]["spec"].get("nodeSelector"))


DAEMON_SETS = ResourceType(
    group="apps",
    kind="DaemonSet",
    plural="daemonsets",
    singular="daemonset",
    namespaced=True,
    versions=(Version("v1", APPS),),
    strategy=DaemonSetStrategy(reset=(("status",),)),
    status=DaemonSetStatusStrategy(reset=(("spec",),)),
    short_names=("ds",),
    categories=("all",),
    columns=(
        NAME,
        _column("Desired", "desiredNumberScheduled", "Nodes that have to run a pod."),
        _column("Current", "currentNumberScheduled", "Nodes that run one."),
        _column("Ready", "numberReady", "Nodes with a ready pod."),
        _column("Up-to-date", "updatedNumberScheduled", "Nodes with a pod of this template."),
        _column("Available", "numberAvailable", "Nodes with an available pod."),
        Column("Node Selector", plain(_nodes), description="Labels of the nodes."),
        AGE,
        *POD_TEMPLATE,
    ),
)
