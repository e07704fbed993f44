"""What all kinds that keep copies of a pod share: template, counts, the status endpoint."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, ClassVar

from sully.api.core import generations
from sully.api.core.checks import Errors, counts
from sully.api.core.columns import plain
from sully.api.core.pods.creation.features import drop_disabled
from sully.api.core.pods.spec.validation import validate_template
from sully.api.core.pods.warnings import spec_warnings
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, Strategy, WriteContext

Obj = dict[str, Any]

SPEC = Path("spec")
STATUS = Path("status")
TEMPLATE = SPEC.child("template")
REPLICA_COUNTS = ("replicas", "minReadySeconds")
_TOO_MANY = "cannot be greater than status.replicas"


class WorkloadStrategy(Strategy, frozen=True):
    """Writes to the object itself: the status stays, a new spec counts as a change."""

    new_status: ClassVar[Obj] = {"replicas": 0}

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start with no pods seen, and without what is switched off in their template."""
        _drop_disabled(obj)
        obj["status"] = dict(self.new_status)
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change."""
        _drop_disabled(obj, old)
        obj["status"] = old["status"]
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about the template, when it is new or something else in the spec is."""
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            at = SPEC.child("template", "spec")
            yield from spec_warnings(obj["spec"]["template"]["spec"], at)


def _drop_disabled(obj: Obj, old: Obj | None = None) -> None:
    # A ReplicationController may be without a template.
    template = obj["spec"].get("template")
    before = {} if old is None else old["spec"].get("template") or {}
    if template is not None:
        drop_disabled(template["spec"], before.get("spec"))


class CountedStatusStrategy(WorkloadStrategy, frozen=True):
    """Writes to the status endpoint: only the status changes, and its counts fit each other.

    Beside the strategy of a kind, whose defaults it needs.
    """

    parts: ClassVar[tuple[str, ...]] = (
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
    )
    """Counts of pods that are at most `replicas`."""
    whole: ClassVar[tuple[str, ...]] = ("replicas",)
    others: ClassVar[tuple[str, ...]] = ("observedGeneration", "terminatingReplicas")
    generation_first: ClassVar[bool] = False
    """The generation is checked before the counts."""
    ready: ClassVar[str] = "readyReplicas"
    """What errors call the ready replicas, which differs between kinds."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        generations.keep_spec(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that counts are not negative, that no part exceeds the whole, nor available ready.

        Collisions are only ever added.
        """
        status = obj["status"]
        names = (*self.whole, *self.parts, *self.others)
        if self.generation_first:
            names = tuple(sorted(names, key=lambda name: name != "observedGeneration"))
        yield from counts(status, names, STATUS)
        for name in self.parts:
            if status.get(name, 0) > status.get("replicas", 0):
                yield STATUS.child(name).invalid(status.get(name, 0), _TOO_MANY)
        available = status.get("availableReplicas", 0)
        if self.parts and available > status.get("readyReplicas", 0):
            text = f"cannot be greater than {self.ready}"
            yield STATUS.child("availableReplicas").invalid(available, text)
        new, before = status.get("collisionCount"), old["status"].get("collisionCount")
        if before is not None and (new is None or new < before):
            yield STATUS.child("collisionCount").invalid(new or 0, "cannot be decremented")


def template_errors(template: Obj, kind: str, *, selected: bool) -> Errors:
    """Check the template of pods that run until they are deleted.

    `selected` is whether the selector of the kind selects these pods.
    """
    yield from template_labels(template, selected=selected)
    yield from validate_template(template, TEMPLATE)
    yield from runs_always(template["spec"], kind)


def template_labels(template: Obj, *, selected: bool) -> Errors:
    """Check that the selector matches the pods of the template."""
    if not selected:
        own = template["metadata"].get("labels")
        text = "`selector` does not match template `labels`"
        shown = own and dict(sorted(own.items()))
        yield TEMPLATE.child("metadata", "labels").invalid(shown, text)


def runs_always(pod: Obj, kind: str) -> Errors:
    """Check that the pods of a template are restarted, and have no deadline."""
    at = TEMPLATE.child("spec")
    policy = pod.get("restartPolicy", "")
    if policy != "Always":
        yield at.child("restartPolicy").not_supported(policy, ("Always",))
    if "activeDeadlineSeconds" in pod:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        yield at.child("activeDeadlineSeconds").forbidden(text)


def count(part: str, name: str) -> Callable[[Obj, datetime], Any]:
    """Return how a column reads a number of `spec` or `status`."""
    return plain(lambda obj: obj[part].get(name, 0))


REPLICA_COLUMNS = (
    Column("Desired", count("spec", "replicas"), type="integer", description="Desired pods."),
    Column("Current", count("status", "replicas"), type="integer", description="Current pods."),
    Column("Ready", count("status", "readyReplicas"), type="integer", description="Ready pods."),
)
