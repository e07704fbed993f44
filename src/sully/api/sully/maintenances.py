"""DeviceMaintenance: what a write may do, and how maintenances are printed.

What happens to a device is decided in `domain/maintenance`.
"""

from typing import Any

import msgspec

from sully.api.core import generations
from sully.api.resource.validation.conditions import validate_conditions
from sully.api.sully import SULLY
from sully.api.sully.columns import table
from sully.api.sully.maintenance_validation import (
    BY_DEFAULT,
    Errors,
    validate_change,
    validate_maintenance,
)
from sully.api.sully.proof_validation import default_proof
from sully.api.sully.types import GROUP, MAINTENANCE_KIND, VERSION, DeviceMaintenanceStatus
from sully.machinery.fields import Path
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]


class MaintenanceStrategy(Strategy):
    """Writes to maintenances."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set what the client left out."""
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        spec["identityAttribute"] = spec.get("identityAttribute") or "uuid"
        for name, defaults in BY_DEFAULT.items():
            given = spec.get(name) or {}
            missing = {
                key: value for key, value in defaults.items() if given.get(key) in (None, "")
            }
            spec[name] = given | missing
        default_proof(spec)
        default_proof({"proof": spec.get("hook")})

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj["status"] = {}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes."""
        obj["status"] = old.get("status", {})
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new maintenance."""
        return validate_maintenance(obj["spec"], Path("spec"), ctx)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a changed maintenance."""
        yield from validate_maintenance(obj["spec"], Path("spec"), ctx)
        yield from validate_change(obj["spec"], old["spec"], Path("spec"))


class MaintenanceStatusStrategy(Strategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check conditions."""
        status = msgspec.convert(obj.get("status", {}), DeviceMaintenanceStatus)
        return validate_conditions(status.conditions, Path("status").child("conditions"))


MAINTENANCES = ResourceType(
    group=GROUP,
    kind=MAINTENANCE_KIND,
    plural="devicemaintenances",
    singular="devicemaintenance",
    namespaced=False,
    versions=(Version(VERSION, SULLY, delete_returns_object=True),),
    strategy=MaintenanceStrategy(reset=(("status",),)),
    status=MaintenanceStatusStrategy(reset=(("metadata",), ("spec",))),
    short_names=("dm",),
    columns=table(MAINTENANCE_KIND),
)
