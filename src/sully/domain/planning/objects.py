"""Pods as plans see them: all that decides where they run, and what decides when they are gone."""

from __future__ import annotations

from typing import Final

from sully.domain.scheduling.objects import Pod
from sully.machinery.meta import OwnerReference

GRACE: Final = 30
"""Seconds a pod has to stop if it does not say."""


class PlannedPod(Pod, frozen=True, kw_only=True):
    """A pod that may leave and be replaced."""

    @property
    def owner(self) -> OwnerReference | None:
        """Return who manages it, if someone does."""
        return self.metadata.controller()

    @property
    def owner_text(self) -> str:
        """Name who manages it, or the pod itself if nobody does."""
        owner = self.owner
        return f"Pod/{self.metadata.name}" if owner is None else f"{owner.kind}/{owner.name}"

    @property
    def grace(self) -> int:
        """Return how many seconds it has to stop."""
        seconds = self.spec.termination_grace_period_seconds
        return GRACE if seconds is None else max(0, seconds)
