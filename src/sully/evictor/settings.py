"""How eviction is configured: the flags, and what of them the feature gates enable."""

from __future__ import annotations

import msgspec

from sully.domain.devices.taints import EVICTING_EFFECTS, enabled_effects
from sully.domain.eviction.judge import DEFAULT_POLICY, EvictionPolicy
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

DEFAULT_PER_SECOND = 10
"""The rate of taints without one, unless a flag sets it."""
MAX_STALENESS = 90.0
"""Seconds. A healthy server sends a bookmark every minute."""


class EvictionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags; None: no limit."""

    default_per_second: int | None = None
    """Evictions per second for taints without a rate of their own."""
    max_per_minute: int | None = None
    """For all evictions together."""
    max_staleness: float | None = MAX_STALENESS
    """How many seconds old the caches that an eviction is based on may be."""


class EvictionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one evictor works."""

    policy: EvictionPolicy = DEFAULT_POLICY
    rates: bool = True
    """Whether taints may have a rate."""
    pauses: bool = True
    records: bool = True
    """Whether evictions are recorded; the server may not serve the kind."""
    totals: bool = True
    """Whether TaintRecords have the totals of rules: the history controller writes them, and is the
    one that deletes old records of evictions."""
    pod_groups: bool = False
    default_per_second: int | None = None
    max_per_minute: int | None = None
    max_staleness: float | None = MAX_STALENESS
    alone: bool = True
    """Whether the server has no eviction controller of its own."""
    transactions: bool = False
    """Whether the API can record, mark and delete a pod in one transaction."""
    authoritative_cache: bool = False
    """The caches are the cluster itself, as in a plan: no pod is read again before its eviction,
    and a budget that refused one is not retried by the clock."""

    @property
    def compat(self) -> Compat:
        """Return which decisions differ from Kubernetes."""
        return self.policy.compat


def eviction_options(
    settings: EvictionSettings,
    gates: Gates,
    *,
    compat: Compat = Compat.SULLY,
    records: bool = True,
    totals: bool = True,
    transactions: bool = False,
) -> EvictionOptions:
    """Return what the gates enable of the settings; Kubernetes has none of them."""
    rates = gates["SullyEvictionRate"] and compat.limits_evictions
    guards = gates["SullyEvictionGuards"] and compat.limits_evictions
    effects = DEFAULT_POLICY.effects
    if compat.limits_evictions:
        effects = enabled_effects(EVICTING_EFFECTS, gates)
    return EvictionOptions(
        policy=EvictionPolicy(compat=compat, effects=effects),
        rates=rates,
        pauses=guards,
        records=records and compat.records_evictions,
        totals=totals,
        transactions=transactions and compat.evicts_in_one_transaction,
        pod_groups=gates["DRAWorkloadResourceClaims"],
        default_per_second=settings.default_per_second if rates else None,
        max_per_minute=settings.max_per_minute if guards else None,
        max_staleness=settings.max_staleness if guards else None,
    )
