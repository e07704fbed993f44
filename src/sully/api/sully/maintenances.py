"""DeviceMaintenance: what a write may do, and how maintenances are printed.

What happens to a device is decided in `domain/maintenance`.
"""

from typing import Any

from sully.api.core.checks import Errors
from sully.api.sully.columns import table
from sully.api.sully.maintenance_validation import (
    BY_DEFAULT,
    validate_change,
    validate_maintenance,
)
from sully.api.sully.policies.proof_validation import default_proof
from sully.api.sully.strategies import (
    NO_STATUS,
    ONLY_STATUS,
    SPEC,
    VERSIONS,
    AuthoredStrategy,
    StatusStrategy,
)
from sully.api.sully.types import GROUP, MAINTENANCE_KIND
from sully.machinery.strategy import ResourceType, WriteContext

Obj = dict[str, Any]


class MaintenanceStrategy(AuthoredStrategy, frozen=True):
    """Writes to maintenances."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set what the client left out."""
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        spec["identityAttribute"] = spec.get("identityAttribute") or "uuid"
        for name, defaults in BY_DEFAULT.items():
            settings = spec.get(name) or {}
            missing = {
                key: value for key, value in defaults.items() if settings.get(key) in (None, "")
            }
            spec[name] = settings | missing
        default_proof(spec)
        default_proof({"proof": spec.get("hook")})

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new maintenance."""
        return validate_maintenance(obj["spec"], SPEC, ctx)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a changed maintenance."""
        yield from validate_maintenance(obj["spec"], SPEC, ctx)
        yield from validate_change(obj["spec"], old["spec"], SPEC)


MAINTENANCES = ResourceType(
    group=GROUP,
    kind=MAINTENANCE_KIND,
    plural="devicemaintenances",
    singular="devicemaintenance",
    namespaced=False,
    versions=VERSIONS,
    strategy=MaintenanceStrategy(reset=NO_STATUS),
    status=StatusStrategy(reset=ONLY_STATUS),
    short_names=("dm",),
    columns=table(MAINTENANCE_KIND),
)
