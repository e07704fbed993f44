"""DeviceTaintPolicy: what a write may do, and how policies are printed.

What a policy does to a device is decided in `domain/devicepolicies`.
"""

from typing import Any

import msgspec

from sully.api.core import generations
from sully.api.resource.validation.conditions import validate_conditions
from sully.api.sully import SULLY
from sully.api.sully.columns import table
from sully.api.sully.device_policy_validation import Errors, validate_policy
from sully.api.sully.prometheus_validation import default_prometheus
from sully.api.sully.proof_validation import default_proof
from sully.api.sully.types import (
    DEVICE_POLICY_KIND,
    GROUP,
    VERSION,
    DeviceTaintPolicyStatus,
)
from sully.machinery.fields import Path
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]


class DevicePolicyStrategy(Strategy):
    """Writes to policies."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set what the client left out."""
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        for name, value in (("mode", "DryRun"), ("identityAttribute", "uuid")):
            spec[name] = spec.get(name) or value
        spec["onDelete"] = spec.get("onDelete") or "Delete"
        spec["partitions"] = spec.get("partitions") or "None"
        for source in spec.get("sources") or ():
            source["severity"] = source.get("severity") or "Major"
            default_prometheus(source)
        for step in spec.get("steps") or ():
            step["minSeverity"] = step.get("minSeverity") or "Minor"
        default_proof(spec)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj["status"] = {}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes."""
        obj["status"] = old.get("status", {})
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new policy."""
        return validate_policy(obj["spec"], Path("spec"), ctx)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a changed policy."""
        return validate_policy(obj["spec"], Path("spec"), ctx)


class DevicePolicyStatusStrategy(Strategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check conditions."""
        status = msgspec.convert(obj.get("status", {}), DeviceTaintPolicyStatus)
        return validate_conditions(status.conditions, Path("status").child("conditions"))


DEVICE_POLICIES = ResourceType(
    group=GROUP,
    kind=DEVICE_POLICY_KIND,
    plural="devicetaintpolicies",
    singular="devicetaintpolicy",
    namespaced=False,
    versions=(Version(VERSION, SULLY, delete_returns_object=True),),
    strategy=DevicePolicyStrategy(reset=(("status",),)),
    status=DevicePolicyStatusStrategy(reset=(("metadata",), ("spec",))),
    short_names=("dtp",),
    columns=table(DEVICE_POLICY_KIND),
)
