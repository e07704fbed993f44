"""Feature gates: named switches with defaults, as `--feature-gates a=true,b=false` sets them."""

from collections.abc import Mapping

import msgspec

from sully.machinery.compat import Compat

# Kubernetes' names and defaults at 1.37, then ours.
DEFAULTS: dict[str, bool] = {
    "DRADeviceTaints": True,
    "DRADeviceTaintRules": True,
    "DRAAdminAccess": True,
    "DRAPrioritizedList": True,
    "DRAExtendedResource": True,
    "DRAResourceClaimDeviceStatus": True,
    "DRAConsumableCapacity": True,
    "DRAPartitionableDevices": True,
    "DRADeviceBindingConditions": True,
    "DRAFractionalCapacityRange": True,
    "DRASchedulerFilterTimeout": True,
    "DRAResourceClaimGranularStatusAuthorization": True,
    "DRAListTypeAttributes": False,
    "DRADerivedAttributes": False,
    "DRADeviceCompatibilityGroups": False,
    "DRANodeAllocatableResources": False,
    "DRAOptionalNodeOperations": False,
    "DRAPartitionableDevicesType": False,
    "DRAResourcePoolStatus": False,
    "DRAWorkloadResourceClaims": False,
    "DRAAdminControlledDeviceAttributes": True,
    "SullyTaintSlices": True,
    "SullyTaintDetails": True,
    "SullyRuleSelectors": True,
    "SullyEvictionRate": True,
    "SullyEvictionGuards": True,
    "SullyPreferNoSchedule": False,
    "SullyNoExecuteWithPodDisruptionBudget": False,
}
LOCKED = frozenset(
    ("DRAAdminAccess", "DRAPrioritizedList", "DRAExtendedResource", "DRAResourceClaimDeviceStatus")
)
_STABLE = LOCKED | {"DRADeviceTaints", "DRADeviceTaintRules"}
_BETA_AND_OFF = frozenset(("DRAWorkloadResourceClaims",))
NEEDS = {"DRADeviceTaintRules": "DRADeviceTaints"}
"""Switches that are nothing without another one."""
OURS = frozenset(
    name
    for name in DEFAULTS
    if name.startswith("Sully") or name == "DRAAdminControlledDeviceAttributes"
)


def stage_of(name: str) -> str:
    """Return the stage of a feature gate as Kubernetes' metrics write it; of a stable one, none."""
    if name in _STABLE:
        return ""
    return "BETA" if DEFAULTS[name] or name in _BETA_AND_OFF else "ALPHA"


class GateError(ValueError):
    """A switch that does not exist or cannot be turned."""


class Gates(msgspec.Struct, frozen=True):
    """The switches as set for this process."""

    overrides: Mapping[str, bool] = msgspec.field(default_factory=dict)

    def __getitem__(self, name: str) -> bool:
        override = self.overrides.get(name)
        return DEFAULTS[name] if override is None else override

    def all(self) -> dict[str, bool]:
        """Return every switch with its position."""
        return {name: self[name] for name in sorted(DEFAULTS)}


def parse_gates(text: str, compat: Compat = Compat.SULLY) -> Gates:
    """Read `A=true,B=false`."""
    overrides = {} if compat.enables_sully_gates else dict.fromkeys(OURS, False)
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        if name not in DEFAULTS:
            raise GateError(
                f'unknown feature gate "{name}" (one of: {", ".join(sorted(DEFAULTS))})'
            )
        if value.lower() not in ("true", "false"):
            raise GateError(f'feature gate {name} must be true or false, not "{value}"')
        on = value.lower() == "true"
        if name in LOCKED and not on:
            raise GateError(f"feature gate {name} is locked to true")
        overrides[name] = on
    return Gates(_settled(overrides))


def _settled(overrides: dict[str, bool]) -> dict[str, bool]:
    """Switch off what needs a gate that is off, unless it was switched on explicitly."""
    gates = Gates(overrides)
    disabled = {name: needed for name, needed in NEEDS.items() if not gates[needed]}
    for name, needed in disabled.items():
        if overrides.get(name):
            raise GateError(f"feature gate {name} needs {needed}, which is switched off")
    return overrides | dict.fromkeys(disabled, False)
