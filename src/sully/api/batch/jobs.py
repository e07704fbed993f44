"""Jobs: pods that run until a number of them have succeeded."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

from sully.api.batch.status import has_condition, status_errors
from sully.api.batch.validation import generated_labels, spec_errors, update_errors
from sully.api.core import generations
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE, plain
from sully.api.core.pods.creation.defaults import default_spec
from sully.api.core.workloads.workload import WorkloadStrategy
from sully.machinery.fields import FieldError
from sully.machinery.formats.names import dns_label_problems
from sully.machinery.formats.timestamps import human_duration, parse_time
from sully.machinery.serialization.gotext import show
from sully.machinery.strategy import Column, ResourceType, Version, WriteContext

Obj = dict[str, Any]

BATCH = "io.k8s.api.batch.v1"
UNLIMITED = 2**31 - 1
_BACKOFF_LIMIT = 6
_SURPRISING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising"
    " behavior; a DNS label is recommended: "
)
_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


class JobStrategy(WorkloadStrategy, frozen=True):
    """Writes to the Job itself."""

    new_status: ClassVar[Obj] = {}

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in template, counts and policies."""
        spec = obj["spec"]
        default_spec(spec["template"]["spec"])
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        limit = UNLIMITED if "backoffLimitPerIndex" in spec else _BACKOFF_LIMIT
        spec.setdefault("backoffLimit", limit)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            # The same labels, not equal ones: those that are added go into both.
            obj["metadata"]["labels"] = labels
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        spec.setdefault("podReplacementPolicy", replacement)
        spec.setdefault("manualSelector", False)
        for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                pattern["status"] = pattern.get("status") or "True"

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Set selector and labels, unless the client does."""
        super().prepare_create(obj, ctx)
        spec = obj["spec"]
        if spec["manualSelector"]:
            return
        template, own = spec["template"]["metadata"], generated_labels(obj)
        shared = "labels" in template and obj["metadata"].get("labels") is template["labels"]
        template["labels"] = dict(sorted((own | (template.get("labels") or {})).items()))
        if shared or not obj["metadata"].get("labels"):
            # As with the defaults, which Kubernetes also sets when it reads a stored Job.
            obj["metadata"]["labels"] = dict(template["labels"])
        selector = spec.setdefault("selector", {})
        uid = "batch.kubernetes.io/controller-uid"
        matched = {uid: own[uid]} | (selector.get("matchLabels") or {})
        selector["matchLabels"] = dict(sorted(matched.items()))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check labels, counts, policies and the template."""
        return spec_errors(obj, new=True)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and what must stay."""
        yield from spec_errors(obj, new=False)
        yield from update_errors(obj, old)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about names that are not host names, and about the template."""
        problems = dns_label_problems(obj["metadata"]["name"]) if old is None else ()
        if problems:
            yield f"{_SURPRISING}[{' '.join(problems)}]"
        yield from super().warnings(obj, old, ctx)


class JobStatusStrategy(JobStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        generations.keep_spec(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the numbers, and that a finished Job stays finished."""
        return status_errors(obj, old)


def _completions(obj: Obj) -> str:
    spec, succeeded = obj["spec"], obj["status"].get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Obj, now: datetime) -> str:
    status = obj["status"]
    if not status.get("startTime"):
        return ""
    end = parse_time(status["completionTime"]) if status.get("completionTime") else now
    return human_duration(int((end - parse_time(status["startTime"])).total_seconds()))


def _state(obj: Obj) -> str:
    terminating = "deletionTimestamp" in obj["metadata"]
    for condition, state in _STATES:
        if has_condition(obj, condition) if condition else terminating:
            return state
    return "Running"


def _label(_group: str, _version: str, _kind: str, label: str) -> str:
    return f"field label {show(label)} not supported for Job"


JOBS = ResourceType(
    group="batch",
    kind="Job",
    plural="jobs",
    singular="job",
    namespaced=True,
    versions=(Version("v1", BATCH),),
    strategy=JobStrategy(reset=(("status",),)),
    status=JobStatusStrategy(reset=(("spec",),)),
    categories=("all",),
    columns=(
        NAME,
        Column("Status", plain(_state), description="State of the Job."),
        Column("Completions", plain(_completions), description="Successful pods of all."),
        Column("Duration", _duration, description="How long the Job runs, or ran."),
        AGE,
        *POD_TEMPLATE,
    ),
    selectable={"status.successful": lambda obj: str(obj["status"].get("succeeded", 0))},
    unknown_label=_label,
    orphans_by_default=True,
)
