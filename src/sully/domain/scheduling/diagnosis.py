"""The diagnosis of a pod that got no devices, in its condition `sully.dev/DeviceDiagnosis`.

Kubernetes reports only `cannot allocate all claims`. The diagnosis has how many devices were
rejected for which reason, as JSON for programs (see docs/guides/scheduling.md); `sully explain`
prints it. Lists have the most important entries and the number of those omitted, so the size of a
pod does not depend on that of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from sully.domain.allocation.verdicts import (
    HolderCount,
    RejectionReason,
    RequestDiagnosis,
    SelectorCount,
    TaintCount,
    Unallocatable,
)
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import SourcedTaint
from sully.machinery.meta import Wire
from sully.machinery.serialization.notes import read_note

DEVICE_DIAGNOSIS: Final = "sully.dev/DeviceDiagnosis"
MOST_BYTES: Final = 8192
_MOST_REQUESTS: Final = 16
_MOST_NAMED: Final = 8

T = TypeVar("T")


class BlockingTaint(Wire, frozen=True, kw_only=True):
    """A taint, its origin, and how many devices it blocked for the request."""

    key: str
    value: str = ""
    effect: str
    origin: str
    """The kind and name of the rule, slice or patch that has it: `DeviceTaintRule/broken`."""
    devices: int
    expired: bool = False
    """The request has a toleration for it, whose tolerationSeconds have passed."""


class UnmatchedSelector(Wire, frozen=True, kw_only=True):
    """A selector, and how many devices it did not match."""

    device_class: str = ""
    """The class that has it; absent for one of the request itself."""
    index: int = 0
    devices: int


class Holder(Wire, frozen=True, kw_only=True):
    """A claim that holds devices which the request could use."""

    claim: str
    devices: int


class RequestAccount(Wire, frozen=True, kw_only=True):
    """One request, or one alternative of it."""

    claim: str
    request: str
    wanted: int = 0
    """How many devices; absent for all that match."""
    admin_access: bool = False
    available: int = 0
    """Devices that are not rejected: too few, or not compatible with the others."""
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """How many devices were refused, by reason."""
    taints: tuple[BlockingTaint, ...] = ()
    more_taints: int = 0
    selectors: tuple[UnmatchedSelector, ...] = ()
    more_selectors: int = 0
    holders: tuple[Holder, ...] = ()
    more_holders: int = 0


class Blocked(Wire, frozen=True, kw_only=True):
    """A claim that has its devices, and that the pod nevertheless cannot use."""

    claim: str
    nodes: int = 0
    """How many nodes cannot use what it holds."""
    device: str = ""
    taints: tuple[BlockingTaint, ...] = ()
    """Taints that would evict a pod immediately that starts to use the claim."""


class Diagnosis(Wire, frozen=True, kw_only=True):
    """Why no node had devices for a pod."""

    nodes: int
    """All nodes there are."""
    reached: int = 0
    """Nodes that fit the pod, except for devices."""
    counted: int = 0
    """Nodes whose devices were counted."""
    requests: tuple[RequestAccount, ...] = ()
    more_requests: int = 0
    blocked: tuple[Blocked, ...] = ()
    incomplete_pools: tuple[str, ...] = ()
    """Pools that were left out because their driver is still writing them."""
    invalid_pools: dict[str, str] = msgspec.field(default_factory=dict)
    """Pools that were left out because they contradict themselves, and how."""
    more_pools: int = 0

    @property
    def lacking(self) -> tuple[RequestAccount, ...]:
        """Return the requests that cannot be served by what is available."""
        return tuple(x for x in self.requests if not x.wanted or x.available < x.wanted)

    @property
    def short(self) -> tuple[RequestAccount, ...]:
        """Return the requests that are to blame; all, if each alone could be served."""
        return self.lacking or self.requests

    @property
    def reason(self) -> str:
        """Return the reason of the condition: what is closest to a device that fits."""
        if self.blocked:
            return "ClaimTainted" if self.blocked[0].taints else "ClaimElsewhere"
        lacking = self.lacking
        for word, reasons in _WORDS.items():
            if any(request.refused.keys() & reasons for request in lacking):
                return word
        if self.incomplete_pools or self.invalid_pools:
            return "PoolsUnusable"
        return "NoDevices" if lacking else "NotTogether"


_NAMES: Final = {
    RejectionReason.CLASS_SELECTOR: "classSelector",
    RejectionReason.REQUEST_SELECTOR: "requestSelector",
    RejectionReason.SELECTOR_ERROR: "selectorError",
    RejectionReason.NODE: "node",
    RejectionReason.CAPACITY: "capacity",
    RejectionReason.IN_USE: "inUse",
    RejectionReason.TAINT: "taint",
    RejectionReason.COUNTERS: "counters",
    RejectionReason.CONSTRAINT: "constraint",
}
_WORDS: Final = {
    "ConstraintUnmet": {"constraint"},
    "CountersUsedUp": {"counters"},
    "CapacityTooSmall": {"capacity"},
    "DevicesTainted": {"taint"},
    "DevicesInUse": {"inUse"},
    "DevicesElsewhere": {"node"},
    "SelectorsFail": {"selectorError"},
    "SelectorsExclude": {"requestSelector", "classSelector"},
}
"""From what is closest to a device that fits to what is farthest from it."""


def encode(diagnosis: Diagnosis) -> str:
    """Encode a diagnosis, with lists as long as its size allows."""
    for most in (_MOST_NAMED, 4, 2, 1, 0):
        text = msgspec.json.encode(shortened(diagnosis, most))
        if len(text) <= MOST_BYTES:
            return text.decode()
    bare = Diagnosis(nodes=diagnosis.nodes, reached=diagnosis.reached, counted=diagnosis.counted)
    return msgspec.json.encode(bare).decode()


def decode(text: str) -> Diagnosis | None:
    """Decode a diagnosis; None if it is invalid: other clients may write the condition."""
    return read_note(text, Diagnosis)


def diagnosis_of(refused: Unallocatable, *, nodes: int, reached: int, counted: int) -> Diagnosis:
    """Return the diagnosis of a rejection on so many nodes."""
    return Diagnosis(
        nodes=nodes,
        reached=reached,
        counted=counted,
        requests=tuple(_request(request) for request in refused.requests),
        incomplete_pools=tuple(sorted(map(str, refused.incomplete))),
        invalid_pools={str(id_): text for id_, text in sorted(refused.invalid.items())},
    )


def taint_of(sourced: SourcedTaint, devices: int = 1, *, expired: bool = False) -> BlockingTaint:
    """Return a taint with its origin."""
    taint = sourced.taint
    return BlockingTaint(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        origin=str(sourced.origin),
        devices=devices,
        expired=expired,
    )


def tainted_claim(claim: str, taints: Iterable[tuple[DeviceId, SourcedTaint]]) -> Blocked:
    """Return a claim that a pod should not use because of taints on its devices."""
    evicting = list(taints)
    device = str(evicting[0][0]) if evicting else ""
    return Blocked(
        claim=claim, device=device, taints=tuple(taint_of(taint) for _, taint in evicting)
    )


def _request(request: RequestDiagnosis) -> RequestAccount:
    return RequestAccount(
        claim=request.claim,
        request=request.request,
        wanted=request.wanted or 0,
        admin_access=request.admin_access,
        available=request.available,
        refused={
            _NAMES[reason]: request.refused[reason]
            for reason in RejectionReason
            if request.refused.get(reason)
        },
        taints=tuple(map(_taint, sorted(request.taints, key=_by_taint))),
        selectors=tuple(map(_selector, sorted(request.selectors, key=_by_selector))),
        holders=tuple(map(_holder, sorted(request.holders, key=_by_holder))),
    )


def _by_taint(count: TaintCount) -> tuple[int, str, str]:
    return -count.devices, str(count.taint.origin), count.taint.taint.key


def _by_selector(count: SelectorCount) -> tuple[int, str, int]:
    return -count.devices, count.device_class, count.index


def _by_holder(count: HolderCount) -> tuple[int, str]:
    return -count.devices, count.claim


def _taint(count: TaintCount) -> BlockingTaint:
    return taint_of(count.taint, count.devices, expired=count.expired)


def _selector(count: SelectorCount) -> UnmatchedSelector:
    return UnmatchedSelector(
        device_class=count.device_class, index=count.index, devices=count.devices
    )


def _holder(count: HolderCount) -> Holder:
    return Holder(claim=count.claim, devices=count.devices)


def shortened(diagnosis: Diagnosis, most: int = _MOST_NAMED) -> Diagnosis:
    """Return a diagnosis with shorter lists, and how many entries are omitted."""
    requests = diagnosis.requests[:_MOST_REQUESTS]
    invalid = list(diagnosis.invalid_pools.items())
    incomplete, more_incomplete = _cut(diagnosis.incomplete_pools, most)
    included, more_invalid = _cut(invalid, most)
    return msgspec.structs.replace(
        diagnosis,
        requests=tuple(_shorter(request, most) for request in requests),
        more_requests=len(diagnosis.requests) - len(requests),
        blocked=diagnosis.blocked[:_MOST_NAMED],
        incomplete_pools=incomplete,
        invalid_pools=dict(included),
        more_pools=more_incomplete + more_invalid,
    )


def _shorter(request: RequestAccount, most: int) -> RequestAccount:
    taints, more_taints = _cut(request.taints, most)
    selectors, more_selectors = _cut(request.selectors, most)
    holders, more_holders = _cut(request.holders, most)
    return msgspec.structs.replace(
        request,
        taints=taints,
        more_taints=more_taints,
        selectors=selectors,
        more_selectors=more_selectors,
        holders=holders,
        more_holders=more_holders,
    )


def _cut(items: Sequence[T], most: int) -> tuple[tuple[T, ...], int]:
    return tuple(items[:most]), max(0, len(items) - most)


Rename = Callable[[str], str]


def for_claims(diagnosis: Diagnosis, rename: Rename) -> Diagnosis:
    """Return the diagnosis for another pod with the same requests in claims of other names."""
    requests = (
        msgspec.structs.replace(request, claim=rename(request.claim))
        for request in diagnosis.requests
    )
    return msgspec.structs.replace(diagnosis, requests=tuple(requests))
