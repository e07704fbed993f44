"""What all kinds that keep copies of pods share: template, selector, counts."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from sully.api.core.checks import label_selector, not_negative, unchanged
from sully.api.core.columns import plain
from sully.api.core.pods.defaults import default_spec
from sully.api.core.pods.validation import validate_template
from sully.api.core.pods.warnings import spec_warnings
from sully.machinery import labels
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Strategy, WriteContext

Obj = dict[str, Any]

APPS = "io.k8s.api.apps.v1"
SPEC = Path("spec")
STATUS = Path("status")
_TOO_MANY = "cannot be greater than status.replicas"


def default_workload(obj: Obj) -> None:
    """Set the defaults of the template, and one replica."""
    default_spec(obj["spec"]["template"]["spec"])
    obj["spec"].setdefault("replicas", 1)


def selector_and_template(spec: Obj) -> Iterator[FieldError]:
    """Check that the selector is set, not empty, and matches the pods of the template."""
    selector, at = spec.get("selector"), SPEC.child("selector")
    if selector is None:
        yield at.required()
    else:
        yield from label_selector(selector, at)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield at.invalid(selector, "empty selector is invalid for deployment")
    try:
        parsed = labels.from_object(selector)
    except labels.SelectorError:
        yield at.invalid(selector, "invalid label selector")
        return
    yield from _template(spec["template"], parsed, SPEC.child("template"))


def _template(template: Obj, selector: labels.Selector, at: Path) -> Iterator[FieldError]:
    own = template["metadata"].get("labels")
    if not selector.everything and not selector.matches(own or {}):
        text = "`selector` does not match template `labels`"
        yield at.child("metadata", "labels").invalid(own, text)
    yield from validate_template(template, at)
    policy = template["spec"].get("restartPolicy", "")
    if policy != "Always":
        yield at.child("spec", "restartPolicy").not_supported(policy, ("Always",))
    if "activeDeadlineSeconds" in template["spec"]:
        text = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield at.child("spec", "activeDeadlineSeconds").forbidden(text)


class WorkloadStrategy(Strategy):
    """What writes to all of them have in common."""

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that the selector stays."""
        yield from self.validate_create(obj, ctx)
        new, before = obj["spec"].get("selector"), old["spec"].get("selector")
        yield from unchanged(new, before, SPEC.child("selector"))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about the template, when it is new or something else in the spec is."""
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            at = SPEC.child("template", "spec")
            yield from spec_warnings(obj["spec"]["template"]["spec"], at)


def status_count(name: str) -> Callable[[Obj, datetime], Any]:
    """Return how a column reads one of the counts."""
    return plain(lambda obj: obj["status"].get(name, 0))


def counts(status: Obj, names: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[FieldError]:
    """Check that counts are not negative, and that no part exceeds `replicas`."""
    for name in names:
        yield from not_negative(status.get(name, 0), STATUS.child(name))
    for name in parts:
        if status.get(name, 0) > status.get("replicas", 0):
            yield STATUS.child(name).invalid(status.get(name, 0), _TOO_MANY)
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        text = "cannot be greater than readyReplicas"
        yield STATUS.child("availableReplicas").invalid(available, text)
