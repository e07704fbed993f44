"""DeviceTaintPolicy: what a write may do, and how policies are printed.

What a policy does to a device is decided in `domain/devicepolicies`.
"""

from typing import Any

from sully.api.core.checks import Errors
from sully.api.sully.columns import table
from sully.api.sully.policies.device_validation import validate_policy
from sully.api.sully.policies.prometheus_validation import default_prometheus
from sully.api.sully.policies.proof_validation import default_proof
from sully.api.sully.strategies import (
    NO_STATUS,
    ONLY_STATUS,
    SPEC,
    VERSIONS,
    AuthoredStrategy,
    StatusStrategy,
)
from sully.api.sully.types import DEVICE_POLICY_KIND, GROUP
from sully.machinery.strategy import ResourceType, WriteContext

Obj = dict[str, Any]


class DevicePolicyStrategy(AuthoredStrategy, frozen=True):
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

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a policy."""
        return validate_policy(obj["spec"], SPEC, ctx)


DEVICE_POLICIES = ResourceType(
    group=GROUP,
    kind=DEVICE_POLICY_KIND,
    plural="devicetaintpolicies",
    singular="devicetaintpolicy",
    namespaced=False,
    versions=VERSIONS,
    strategy=DevicePolicyStrategy(reset=NO_STATUS),
    status=StatusStrategy(reset=ONLY_STATUS),
    short_names=("dtp",),
    columns=table(DEVICE_POLICY_KIND),
)
