"""ReplicaSets: a number of equal pods."""

from collections.abc import Iterator
from typing import Any

from sully.api.apps.workloads import (
    APPS,
    AppsStrategy,
    default_workload,
    selector_and_template,
)
from sully.api.core.checks import counts
from sully.api.core.columns import AGE, NAME, POD_TEMPLATE
from sully.api.core.workloads.workload import (
    REPLICA_COLUMNS,
    REPLICA_COUNTS,
    SPEC,
    CountedStatusStrategy,
)
from sully.machinery.fields import FieldError
from sully.machinery.strategy import ResourceType, Version, WriteContext

Obj = dict[str, Any]


class ReplicaSetStrategy(AppsStrategy, frozen=True):
    """Writes to the replica set itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the template and the count."""
        default_workload(obj)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check counts, selector and template."""
        spec = obj["spec"]
        yield from counts(spec, REPLICA_COUNTS, SPEC)
        yield from selector_and_template(spec)


class ReplicaSetStatusStrategy(CountedStatusStrategy, ReplicaSetStrategy, frozen=True):
    """Writes to the status endpoint."""


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
        *REPLICA_COLUMNS,
        AGE,
        *POD_TEMPLATE,
    ),
)
