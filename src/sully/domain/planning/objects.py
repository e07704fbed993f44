"""Pods as plans read them: what decides where they are scheduled, and when they terminate."""

from __future__ import annotations

from typing import Final

from sully.domain.scheduling.objects import Pod

DEFAULT_GRACE_SECONDS: Final = 30
"""The default of `terminationGracePeriodSeconds`."""


class PlannedPod(Pod, frozen=True, kw_only=True):
    """A pod that may be evicted and replaced."""

    @property
    def grace(self) -> int:
        """Return its grace period in seconds."""
        seconds = self.spec.termination_grace_period_seconds
        return DEFAULT_GRACE_SECONDS if seconds is None else max(0, seconds)
