"""What happens when a pod is written, and the resource itself."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.core import generations
from sully.api.core.namespaces import unsupported_label
from sully.api.core.pods.aggregate import quality_of_service
from sully.api.core.pods.columns import COLUMNS, row_conditions
from sully.api.core.pods.conditions import POD_SCHEDULED, with_condition
from sully.api.core.pods.creation.admission import (
    admit_change,
    admit_new,
    expected_account,
    review_new,
)
from sully.api.core.pods.creation.defaults import GRACE_SECONDS, default_pod, default_spec
from sully.api.core.pods.creation.features import drop_disabled
from sully.api.core.pods.creation.label_keys import merge_label_keys
from sully.api.core.pods.creation.repeated import without_token_name
from sully.api.core.pods.phases import is_terminal
from sully.api.core.pods.pod_level import default_pod_level
from sully.api.core.pods.spec.validation import SPEC, validate_new_pod
from sully.api.core.pods.updates.status import align_addresses, keep_generations, validate_status
from sully.api.core.pods.updates.subresources import (
    keep_metadata,
    validate_ephemeral_containers,
    validate_resize,
    with_ephemeral_containers,
    with_resources,
)
from sully.api.core.pods.updates.update import validate_change
from sully.api.core.pods.warnings import spec_warnings
from sully.api.core.quotas.limits import review_pod, set_container_defaults
from sully.machinery.fields import FieldError
from sully.machinery.formats.names import dns_label_problems
from sully.machinery.memo import ValidValues
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_GATED = {
    "type": POD_SCHEDULED,
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_HOSTNAME = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior;"
    " a DNS label is recommended: [{}]"
)

_WITHOUT_WARNINGS = ValidValues(256)


class PodStrategy(Strategy, frozen=True):
    """Writes to the pod itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the spec, and write addresses under both of their names."""
        default_spec(obj["spec"])
        default_pod(obj["spec"])
        align_addresses(obj["status"])

    def expects(self, obj: Obj) -> tuple[str, str] | None:
        """Return the service account that a new namespace is about to get."""
        return expected_account(obj)

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Add what the cluster decides: account, priority, tolerations."""
        if old is None:
            admit_new(obj, ctx)
        else:
            admit_change(obj, old)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start pending; the quality of service class never changes."""
        generations.start(obj)
        drop_disabled(obj["spec"])
        default_pod_level(obj["spec"])
        status = {"phase": "Pending", "qosClass": quality_of_service(obj["spec"])}
        obj["status"] = status
        if obj["spec"].get("schedulingGates"):
            obj["status"] = with_condition(obj, _GATED, ctx.now)["status"]
        if "affinity" in obj["spec"] or "topologySpreadConstraints" in obj["spec"]:
            merge_label_keys(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change."""
        obj["status"] = old["status"]
        if "resources" in old["spec"]:
            # Kept for clients that do not know the field.
            obj["spec"].setdefault("resources", old["spec"]["resources"])
        drop_disabled(obj["spec"], old["spec"])
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the spec."""
        return validate_new_pod(obj, privileged=ctx.compat.allows_privileged)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the spec, and that only what may change changes."""
        return validate_change(obj, old)

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Check what only the cluster may set, which later writes cannot change."""
        if old is None:
            review_new(obj, ctx)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn on create only: later writes come from programs."""
        if old is not None:
            return
        problems = dns_label_problems(obj["metadata"].get("name", ""))
        if problems:
            yield _HOSTNAME.format(" ".join(problems))
        spec = obj["spec"]
        yield from _WITHOUT_WARNINGS.check(without_token_name(spec), spec_warnings(spec, SPEC))


class PodPartStrategy(PodStrategy, frozen=True):
    """Writes to an endpoint that owns a part of the spec, and no metadata."""

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Set no defaults: those of the pod stay."""

    @abstractmethod
    def part(self, obj: Obj, old: Obj) -> Obj:
        """Return the spec that the endpoint writes, from that of the request and the stored one."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep everything but the part of the spec; count the change."""
        obj["spec"] = self.part(obj["spec"], old["spec"])
        obj["status"] = old["status"]
        keep_metadata(obj["metadata"], old["metadata"])
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))


class EphemeralContainersStrategy(PodPartStrategy, frozen=True):
    """Adds containers for debugging to a pod that runs."""

    def part(self, obj: Obj, old: Obj) -> Obj:
        """Take the ephemeral containers."""
        return with_ephemeral_containers(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check them, and that those of before stay as they are."""
        return validate_ephemeral_containers(obj, old)


class ResizeStrategy(PodPartStrategy, frozen=True):
    """Changes the CPU and memory of the containers of a pod that runs."""

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Set the defaults of the namespace for containers."""
        set_container_defaults(obj, ctx.limit_ranges(obj["metadata"].get("namespace", "")))

    def part(self, obj: Obj, old: Obj) -> Obj:
        """Take resources and resize policies."""
        return with_resources(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check them, and that nothing else changes."""
        return validate_resize(obj, old)

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Refuse what exceeds the limits of the namespace."""
        review_pod(obj, ctx.limit_ranges(obj["metadata"].get("namespace", "")))


class PodStatusStrategy(PodStrategy, frozen=True):
    """Writes to the status endpoint, which may also change labels."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Write addresses under both of their names: the spec is not written here."""
        align_addresses(obj["status"])

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Set no defaults: the spec is not written here."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep spec, owners and quality of service."""
        obj["spec"] = old["spec"]
        owners = old["metadata"].get("ownerReferences")
        obj["metadata"].pop("ownerReferences", None)
        if owners:
            obj["metadata"]["ownerReferences"] = owners
        quality = old["status"].get("qosClass")
        if quality and not obj["status"].get("qosClass"):
            obj["status"]["qosClass"] = quality
        keep_generations(obj["status"], old["status"])
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the status only."""
        return validate_status(obj, old)


def deletion_grace(pod: Obj, requested: int | None = None) -> int:
    """Return the grace period of a deletion; zero for a pod that does not run."""
    never_ran = not pod["spec"].get("nodeName")
    if never_ran or is_terminal(pod):
        return 0
    own = pod["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS)
    seconds = int(own if requested is None else requested)
    return seconds if seconds >= 0 else 1


def _spec(name: str) -> Any:
    return lambda pod: str(pod["spec"].get(name, ""))


def _status(name: str) -> Any:
    return lambda pod: str(pod["status"].get(name, ""))


PODS = ResourceType(
    group="",
    kind="Pod",
    plural="pods",
    singular="pod",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1", delete_returns_object=True),),
    strategy=PodStrategy(reset=(("status",),)),
    status=PodStatusStrategy(
        reset=(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))
    ),
    parts={"ephemeralcontainers": EphemeralContainersStrategy(), "resize": ResizeStrategy()},
    connect=("binding", "eviction"),
    refused=("attach", "exec", "log", "portforward", "proxy"),
    short_names=("po",),
    categories=("all",),
    columns=COLUMNS,
    row_conditions=row_conditions,
    selectable={
        "spec.nodeName": _spec("nodeName"),
        "spec.host": _spec("nodeName"),  # its name in the oldest clients
        "spec.restartPolicy": _spec("restartPolicy"),
        "spec.schedulerName": _spec("schedulerName"),
        "spec.serviceAccountName": _spec("serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if pod["spec"].get("hostNetwork") else "false",
        "status.phase": _status("phase"),
        "status.podIP": lambda pod: next(
            (str(a.get("ip", "")) for a in pod["status"].get("podIPs") or ()), ""
        ),
        "status.podIPs": lambda _: "",  # accepted, but no pod has a value for it
        "status.nominatedNodeName": _status("nominatedNodeName"),
    },
    unknown_label=unsupported_label,
    grace_period=deletion_grace,
)
