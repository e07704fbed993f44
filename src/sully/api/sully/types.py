"""Records as frozen values: what controllers write and what `sully history` reads.

The tables (sully.fields) say the same about the wire and describe every field. How a record is made
from a decision is `domain/history.py`.
"""

from datetime import datetime

from sully.api.resource.types import DeviceTaint, DeviceTaintSelector
from sully.machinery.meta import ObjectMeta, Wire

GROUP = "sully.dev"
VERSION = "v1alpha1"
RULE_LABEL = "sully.dev/rule"
"""Name of the rule that a record is about, where it can be the value of a label."""
NODE_LABEL = "sully.dev/node"
CAUSE_KINDS = ("DeviceTaintRule", "ResourceSlice", "ResourceSlicePatch")


class EvictedPodOwner(Wire, frozen=True, kw_only=True):
    """Who manages a pod."""

    kind: str
    name: str


class EvictedPod(Wire, frozen=True, kw_only=True):
    """A pod as it was when it was made to leave."""

    namespace: str
    name: str
    uid: str
    node: str = ""
    owner: EvictedPodOwner | None = None


class EvictionCause(Wire, frozen=True, kw_only=True):
    """A taint on one device, and who put it there."""

    kind: str
    name: str
    uid: str = ""
    key: str
    value: str = ""
    effect: str
    description: str = ""
    device: str


class EvictionRecordSpec(Wire, frozen=True, kw_only=True):
    """What happened to a pod."""

    pod: EvictedPod
    claims: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    causes: tuple[EvictionCause, ...] = ()
    due_time: datetime | None = None
    evicted_time: datetime


class EvictionRecord(Wire, frozen=True, kw_only=True):
    """The memory of one eviction."""

    metadata: ObjectMeta
    spec: EvictionRecordSpec

    def rules(self) -> frozenset[str]:
        """Return the uids of the rules that made the pod leave."""
        return frozenset(each.uid for each in self.spec.causes if each.kind == CAUSE_KINDS[0])


class TaintRecordRule(Wire, frozen=True, kw_only=True):
    """Names a rule for good."""

    name: str
    uid: str


class TaintChange(Wire, frozen=True, kw_only=True):
    """One change of a rule."""

    time: datetime
    what: str
    by: str = ""


class TaintRecordSpec(Wire, frozen=True, kw_only=True):
    """A rule as it was first seen."""

    rule: TaintRecordRule
    taint: DeviceTaint
    device_selector: DeviceTaintSelector | None = None
    created_by: str = ""
    description: str = ""
    added_time: datetime


class TaintRecordStatus(Wire, frozen=True, kw_only=True):
    """What became of a rule."""

    observed_generation: int = 0
    taint: DeviceTaint | None = None
    device_selector: DeviceTaintSelector | None = None
    description: str = ""
    expires_at: str = ""
    paused: str = ""
    changes: tuple[TaintChange, ...] = ()
    evicted: int = 0
    lifted_time: datetime | None = None
    lifted_by: str = ""


class TaintRecord(Wire, frozen=True, kw_only=True):
    """The memory of one rule."""

    metadata: ObjectMeta
    spec: TaintRecordSpec
    status: TaintRecordStatus = TaintRecordStatus()
