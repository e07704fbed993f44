"""The changes that the inventory reports, and which features of it are enabled."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sully.api.resource.annotations import GUARDS
from sully.api.resource.types import DeviceTaintRule
from sully.domain.devices.pools import PoolId
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

ChangedPools = Mapping[PoolId, frozenset[str] | None]
"""Pools whose devices may have changed; None stands for all devices of the pool."""


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """The enabled features; each depends on a feature gate, unless it is always enabled."""

    taints: bool = True
    rules: bool = True
    rule_selectors: bool = True
    taint_slices: bool = True
    patches: bool = True
    """Whether patches change devices at all: not where only Kubernetes acts. Has no gate."""
    patch_attributes: bool = True
    patch_evictions_only: bool = False
    """Whether only those taints of patches count that evict: kube-scheduler does not read patches,
    Sully's evictor does. Has no gate."""
    suppression: bool = True
    """Whether policies can suppress taints of drivers: not where Kubernetes schedules or evicts.
    Has the gate of pauses and expiry, because a suppression expires."""
    absent_selects_all: bool = False
    """Whether a rule without a selector selects every device, as in the scheduler of Kubernetes
    1.37, against its documentation and its own eviction. Has no gate."""
    pool_owners: bool = True
    """Whether the slices of a node are only used in its own pools. Kubernetes uses them in every
    pool. Has no gate."""


def features(gates: Gates, compat: Compat = Compat.SULLY) -> Features:
    """Return the features that gates enable; rules require taints."""
    return Features(
        taints=gates["DRADeviceTaints"],
        rules=gates["DRADeviceTaints"] and gates["DRADeviceTaintRules"],
        rule_selectors=gates["SullyRuleSelectors"],
        taint_slices=gates["SullyTaintSlices"],
        patch_attributes=gates["DRAAdminControlledDeviceAttributes"],
        suppression=gates[GUARDS],
        pool_owners=compat.enforces_pool_owners,
    )


class RuleChange(msgspec.Struct, frozen=True):
    """A rule before and after; the same twice if only the devices that it selects changed."""

    old: DeviceTaintRule | None
    new: DeviceTaintRule | None


class InventoryChange(msgspec.Struct, frozen=True):
    """The effects of one event on the inventory."""

    pools: ChangedPools = msgspec.field(default_factory=dict)
    rules: tuple[RuleChange, ...] = ()
