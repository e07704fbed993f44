"""CSIStorageCapacities: how much a driver can still provide, and where."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import NOT_NEGATIVE, dns_subdomain, label_selector, same
from sully.api.core.columns import NAME, plain
from sully.api.storage.classes import STORAGE
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]


class CapacityStrategy(Strategy, frozen=True):
    """Writes to capacities."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check topology, class and sizes."""
        yield from label_selector(obj.get("nodeTopology"), Path("nodeTopology"))
        yield from dns_subdomain(obj["storageClassName"], Path("storageClassName"))
        if "capacity" in obj and parse_quantity(obj["capacity"]).sign() < 0:
            yield Path("capacity").invalid(obj["capacity"], NOT_NEGATIVE)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that it is about the same storage."""
        yield from self.validate_create(obj, ctx)
        for name in ("nodeTopology", "storageClassName"):
            if not same(obj.get(name), old.get(name)):
                yield Path(name).invalid(obj.get(name), "field is immutable")


CSI_STORAGE_CAPACITIES = ResourceType(
    group="storage.k8s.io",
    kind="CSIStorageCapacity",
    plural="csistoragecapacities",
    singular="csistoragecapacity",
    namespaced=True,
    versions=(Version("v1", STORAGE, unconditional_update=False),),
    strategy=CapacityStrategy(),
    columns=(
        NAME,
        Column(
            "Created At",
            plain(lambda obj: obj["metadata"].get("creationTimestamp")),
            type="date",
            description="When the object was created.",
        ),
    ),
)
