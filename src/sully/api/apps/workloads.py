"""What all kinds of the group `apps` share: their selector, and who may change it."""

from collections.abc import Generator, Iterator
from typing import Any

from sully.api.core.checks import Errors, label_selector, same_selector, selector_in_order
from sully.api.core.columns import plain
from sully.api.core.pods.creation.defaults import default_spec
from sully.api.core.workloads.workload import SPEC, WorkloadStrategy, template_errors
from sully.machinery.fields import FieldError
from sully.machinery.selectors import labels
from sully.machinery.strategy import Column, WriteContext

Obj = dict[str, Any]

APPS = "io.k8s.api.apps.v1"


class AppsStrategy(WorkloadStrategy, frozen=True):
    """Writes to an object whose selector is immutable."""

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that the selector stays."""
        yield from self.validate_create(obj, ctx)
        yield from same_selector(obj["spec"], old["spec"])


def default_workload(obj: Obj) -> None:
    """Set the defaults of the template, and one replica."""
    default_spec(obj["spec"]["template"]["spec"])
    obj["spec"].setdefault("replicas", 1)


def selector_and_template(spec: Obj) -> Errors:
    """Check the selector, and the template of a ReplicaSet or Deployment."""
    selected = yield from matching_selector(spec, "deployment", "invalid label selector")
    if selected is not None:
        yield from template_errors(spec["template"], "ReplicaSet", selected=selected)


def matching_selector(
    spec: Obj, kind: str, unreadable: str
) -> Generator[FieldError, None, bool | None]:
    """Check that the selector is set, not empty and readable; return what `selects` does."""
    yield from required_selector(spec.get("selector"), kind)
    selected = selects(spec)
    if selected is None:
        shown = selector_in_order(spec.get("selector"))
        yield SPEC.child("selector").invalid(shown, unreadable)
    return selected


def required_selector(selector: Obj | None, kind: str) -> Errors:
    """Check that a selector is set and not empty."""
    at = SPEC.child("selector")
    if selector is None:
        yield at.required()
        return
    yield from label_selector(selector, at)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield at.invalid(selector, f"empty selector is invalid for {kind}")


def selects(spec: Obj) -> bool | None:
    """Report whether a selector selects the pods of the template; None if it cannot be read."""
    try:
        selector = labels.from_object(spec.get("selector"))
    except labels.SelectorError:
        return None
    own = spec["template"]["metadata"].get("labels") or {}
    return selector.everything or selector.matches(own)


def _ready(obj: Obj) -> str:
    return f"{obj['status'].get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


READY = Column("Ready", plain(_ready), description="Ready pods of the desired ones.")
