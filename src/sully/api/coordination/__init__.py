"""The coordination group: leases, by which processes agree who is in charge.

Owns: the kind Lease.
Never: elects anyone; clients do, by the rules of the record.
Start at: LeaseStrategy below.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sully.api.core.checks import not_negative
from sully.api.core.columns import AGE, NAME, plain
from sully.api.tables import load
from sully.machinery.fields import FieldError, Path
from sully.machinery.schema import Tables
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

COORDINATION = "io.k8s.api.coordination.v1"


class LeaseStrategy(Strategy, frozen=True):
    """Writes to leases."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Remove what coordinated leader election needs, which Kubernetes has off by default."""
        for name in ("strategy", "preferredHolder"):
            obj["spec"].pop(name, None)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Remove what a new lease would not have."""
        self.prepare_create(obj, ctx)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the numbers of the record."""
        spec, at = obj["spec"], Path("spec")
        if spec.get("leaseDurationSeconds", 1) <= 0:
            text = "must be greater than 0"
            yield at.child("leaseDurationSeconds").invalid(spec["leaseDurationSeconds"], text)
        yield from not_negative(spec.get("leaseTransitions", 0), at.child("leaseTransitions"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new record like a new lease."""
        return self.validate_create(obj, ctx)

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Allow names without a domain: Kubernetes checks them for its older kinds only."""
        return ()


LEASES = ResourceType(
    group="coordination.k8s.io",
    kind="Lease",
    plural="leases",
    singular="lease",
    namespaced=True,
    versions=(Version("v1", COORDINATION, unconditional_update=False),),
    strategy=LeaseStrategy(),
    columns=(
        NAME,
        Column(
            "Holder",
            plain(lambda obj: obj["spec"].get("holderIdentity", "")),
            description="Who holds the lease.",
        ),
        AGE,
    ),
    create_on_update=True,
)


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, COORDINATION, "coordination.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (LEASES,)
