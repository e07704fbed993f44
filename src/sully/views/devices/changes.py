"""What listeners of the inventory hear, and which parts of it are switched on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sully.api.resource.types import DeviceTaintRule
from sully.domain.devices.pools import PoolId
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

Touched = Mapping[PoolId, frozenset[str] | None]
"""Pools in which devices may be different; None stands for all devices of the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What is switched on; each follows a feature gate."""

    taints: bool = True
    rules: bool = True
    rule_selectors: bool = True
    taint_slices: bool = True
    patch_attributes: bool = True
    absent_selects_all: bool = False
    """Whether a rule without a selector is for every device, as it is for Kubernetes 1.37's
    scheduler, against its documentation and its own eviction. Follows no gate."""
    pool_owners: bool = True
    """Whether the slices of a node count only in pools that are its own. Kubernetes counts them in
    every pool. Follows no gate."""


def features(gates: Gates, compat: Compat = Compat.SULLY) -> Features:
    """Return what the gates switch on; rules are nothing without taints."""
    return Features(
        taints=gates["DRADeviceTaints"],
        rules=gates["DRADeviceTaints"] and gates["DRADeviceTaintRules"],
        rule_selectors=gates["SullyRuleSelectors"],
        taint_slices=gates["SullyTaintSlices"],
        patch_attributes=gates["DRAAdminControlledDeviceAttributes"],
        pool_owners=compat.enforces_pool_owners,
    )


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule as it was and as it is; the same twice when only what it selects changed."""

    old: DeviceTaintRule | None
    new: DeviceTaintRule | None


@dataclass(frozen=True, slots=True)
class Change:
    """What one event did to the inventory."""

    pools: Touched = field(default_factory=dict)
    rules: tuple[RuleChange, ...] = ()
