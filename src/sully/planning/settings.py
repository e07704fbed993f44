"""What a rehearsal needs to know about the control plane that no object says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sully.domain.eviction.judge import EvictionPolicy
from sully.scheduler.options import Options
from sully.views.snapshot.snapshot import ALL_EFFECTS

_SCHEDULING = Options(eviction_policy=ALL_EFFECTS)
"""With budgets: a server on which that gate is off takes no such taint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the control plane is set up; its own defaults, unless somebody knows better."""

    policy: EvictionPolicy | None = None
    """How pods are made to leave; as the snapshot tells, if nothing is said."""
    scheduling: Options = _SCHEDULING
    default_per_second: int | None = None
    max_per_minute: int | None = None
    stop_seconds: float | None = None
    """How long pods take to stop, at most their grace period; None: all of it."""
    horizon: timedelta = timedelta(days=365)
    """What happens later is not looked at."""
