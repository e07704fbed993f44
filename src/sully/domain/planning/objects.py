"""Pods as plans read them: what decides where they are scheduled, and when they terminate."""

from __future__ import annotations

from typing import Final

from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.revisions import HASH_LABEL
from sully.machinery.meta import OwnerReference

DEFAULT_GRACE_SECONDS: Final = 30
"""The default of `terminationGracePeriodSeconds`."""


class PlannedPod(Pod, frozen=True, kw_only=True):
    """A pod that may be evicted and replaced."""

    @property
    def owner(self) -> OwnerReference | None:
        """Return the reference to its controller, if it has one."""
        return self.metadata.controller()

    @property
    def owner_text(self) -> str:
        """Return kind and name of its controller, or of itself if it has none."""
        owner = self.owner
        return f"Pod/{self.metadata.name}" if owner is None else f"{owner.kind}/{owner.name}"

    @property
    def workload_text(self) -> str:
        """Return kind and name of its owner, for the pod of a Deployment that Deployment."""
        owner, hash_ = self.owner, self.metadata.labels.get(HASH_LABEL, "")
        if owner is None or owner.kind != "ReplicaSet" or not hash_:
            return self.owner_text
        name = owner.name.removesuffix(f"-{hash_}")
        return f"Deployment/{name}" if name != owner.name else self.owner_text

    @property
    def grace(self) -> int:
        """Return its grace period in seconds."""
        seconds = self.spec.termination_grace_period_seconds
        return DEFAULT_GRACE_SECONDS if seconds is None else max(0, seconds)
