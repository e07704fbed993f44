"""The `scale` subresource: a workload as a number of replicas."""

from typing import Any

from msgspec.structs import replace

from sully.api.core.checks import not_negative
from sully.api.core.columns import AGE, NAME, plain
from sully.machinery.errors import invalid
from sully.machinery.fields import Path
from sully.machinery.selectors import labels
from sully.machinery.strategy import Column

Obj = dict[str, Any]

SCALE_COLUMNS = (
    # Kubernetes prints a Scale with a column of names that is not marked as one.
    replace(NAME, format=""),
    Column(
        "Desired",
        plain(lambda scale: scale["spec"].get("replicas", 0)),
        type="integer",
        description="Desired replicas.",
    ),
    Column(
        "Available",
        plain(lambda scale: scale["status"].get("replicas", 0)),
        type="integer",
        description="Current replicas.",
    ),
    AGE,
)
CUSTOM_SCALE_COLUMNS = (NAME, *SCALE_COLUMNS[1:-1], replace(AGE, type="date"))
"""Of the scale of a custom resource."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Obj) -> Obj:
    """Return a workload as a Scale, without kind and apiVersion."""
    selector = str(labels.from_object(obj["spec"].get("selector")))
    return build_scale(
        obj, obj["spec"].get("replicas", 0), obj["status"].get("replicas", 0), selector
    )


def build_scale(obj: Obj, replicas: int, current: int, selector: str) -> Obj:
    """Return an object with these numbers of replicas as a Scale."""
    metadata = {name: obj["metadata"][name] for name in _IDENTITY if name in obj["metadata"]}
    status: Obj = {"replicas": current}
    if selector:
        status["selector"] = selector
    # A count of zero is not written; absent and zero are the same in a Scale.
    return {
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def apply_scale(obj: Obj, scale: Obj) -> Obj:
    """Return the workload with the count of a Scale, or raise what is wrong with it.

    The Scale's resourceVersion and uid go over to the workload: the write compares them.
    """
    name = obj["metadata"]["name"]
    replicas = scale["spec"].get("replicas", 0)
    problems = [*not_negative(replicas, Path("spec.replicas"))]
    if problems:
        raise invalid("Scale", "autoscaling", name, problems)
    metadata = dict(obj["metadata"])
    for field in ("resourceVersion", "uid"):
        if scale["metadata"].get(field):
            metadata[field] = scale["metadata"][field]
    return {**obj, "metadata": metadata, "spec": {**obj["spec"], "replicas": replicas}}
