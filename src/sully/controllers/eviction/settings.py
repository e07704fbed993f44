"""How eviction is set up: what flags say, and what of that the feature gates let through."""

from __future__ import annotations

from dataclasses import dataclass

from sully.domain.eviction.judge import EVICTING, EVICTING_WITH_BUDGETS, USUAL, Terms
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

MAX_STALENESS = 90.0
"""Seconds. A server that is well sends a bookmark every minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionSettings:
    """What flags say; None stands for no limit."""

    default_per_second: int | None = None
    """For taints that do not say how fast their pods may leave."""
    max_per_minute: int | None = None
    """For all evictions together."""
    max_staleness: float | None = MAX_STALENESS
    """How many seconds old what an eviction is based on may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOptions:
    """How one controller works."""

    terms: Terms = USUAL
    rates: bool = True
    """Whether taints say how fast their pods may leave."""
    pauses: bool = True
    records: bool = True
    """Whether evictions are written down; the server may not know the kind."""
    pod_groups: bool = False
    default_per_second: int | None = None
    max_per_minute: int | None = None
    max_staleness: float | None = MAX_STALENESS

    @property
    def compat(self) -> Compat:
        """Return which decisions differ from Kubernetes."""
        return self.terms.compat


def eviction_options(
    settings: EvictionSettings,
    gates: Gates,
    *,
    compat: Compat = Compat.SULLY,
    records: bool = True,
) -> EvictionOptions:
    """Return what the gates leave of the settings; Kubernetes has none of them."""
    rates = gates["SullyEvictionRate"] and compat.limits_evictions
    guards = gates["SullyEvictionGuards"] and compat.limits_evictions
    budgets = gates["SullyNoExecuteWithPodDisruptionBudget"] and compat.limits_evictions
    effects = EVICTING_WITH_BUDGETS if budgets else EVICTING
    return EvictionOptions(
        terms=Terms(compat=compat, effects=effects),
        rates=rates,
        pauses=guards,
        records=records and compat.records_evictions,
        pod_groups=gates["DRAWorkloadResourceClaims"],
        default_per_second=settings.default_per_second if rates else None,
        max_per_minute=settings.max_per_minute if guards else None,
        max_staleness=settings.max_staleness if guards else None,
    )
