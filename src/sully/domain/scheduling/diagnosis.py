"""The diagnosis of a pod that got no devices, in its condition `sully.dev/DeviceDiagnosis`.

Kubernetes says only `cannot allocate all claims`. The diagnosis says how many devices were refused
for which reason, in JSON for programs (docs/guides/scheduling.md has the form); `sully explain`
puts it into words. Lists name what matters most and end with how much was left out, so a pod does
not grow with the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from sully.domain.allocation.verdicts import (
    HolderCount,
    Reason,
    RequestDiagnosis,
    SelectorCount,
    TaintCount,
    Unallocatable,
)
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import SourcedTaint
from sully.machinery.meta import Wire

CONDITION: Final = "sully.dev/DeviceDiagnosis"
MOST_BYTES: Final = 8192
_MOST_REQUESTS: Final = 16
_MOST_NAMED: Final = 8

T = TypeVar("T")


class Taint(Wire, frozen=True, kw_only=True):
    """A taint, who set it, and how many devices it kept from the request."""

    key: str
    value: str = ""
    effect: str
    origin: str
    """The kind and name of the rule, slice or patch it stands in: `DeviceTaintRule/broken`."""
    devices: int
    lapsed: bool = False
    """The request has a toleration for it, whose tolerationSeconds are over."""


class Selector(Wire, frozen=True, kw_only=True):
    """A selector, and how many devices it did not choose."""

    device_class: str = ""
    """The class it stands in; absent for one of the request itself."""
    index: int = 0
    devices: int


class Holder(Wire, frozen=True, kw_only=True):
    """A claim that holds devices which the request could use."""

    claim: str
    devices: int


class Asked(Wire, frozen=True, kw_only=True):
    """One request, or one alternative of it."""

    claim: str
    request: str
    wanted: int = 0
    """How many devices; absent for all that match."""
    admin_access: bool = False
    available: int = 0
    """Devices nothing speaks against: too few, or they do not go with the others."""
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """How many devices were refused, by reason."""
    taints: tuple[Taint, ...] = ()
    more_taints: int = 0
    selectors: tuple[Selector, ...] = ()
    more_selectors: int = 0
    holders: tuple[Holder, ...] = ()
    more_holders: int = 0


class Blocked(Wire, frozen=True, kw_only=True):
    """A claim that has its devices, and that the pod nevertheless cannot use."""

    claim: str
    nodes: int = 0
    """How many nodes cannot use what it holds."""
    device: str = ""
    taints: tuple[Taint, ...] = ()
    """Taints for which a pod that joins now would have to leave at once."""


class Diagnosis(Wire, frozen=True, kw_only=True):
    """Why no node had devices for a pod."""

    nodes: int
    """All nodes there are."""
    reached: int = 0
    """Nodes that would have taken the pod, but for devices."""
    counted: int = 0
    """Nodes whose devices were counted."""
    requests: tuple[Asked, ...] = ()
    more_requests: int = 0
    blocked: tuple[Blocked, ...] = ()
    incomplete_pools: tuple[str, ...] = ()
    """Pools that were left out because their driver is still writing them."""
    invalid_pools: dict[str, str] = msgspec.field(default_factory=dict)
    """Pools that were left out because they contradict themselves, and how."""
    more_pools: int = 0

    @property
    def lacking(self) -> tuple[Asked, ...]:
        """Return the requests that cannot be served by what is available."""
        return tuple(x for x in self.requests if not x.wanted or x.available < x.wanted)

    @property
    def short(self) -> tuple[Asked, ...]:
        """Return the requests that are to blame; all, if each alone could be served."""
        return self.lacking or self.requests

    @property
    def reason(self) -> str:
        """Return in a word what stands closest in the way."""
        if self.blocked:
            return "ClaimTainted" if self.blocked[0].taints else "ClaimElsewhere"
        lacking = self.lacking
        for word, reasons in _WORDS.items():
            if any(each.refused.keys() & reasons for each in lacking):
                return word
        if self.incomplete_pools or self.invalid_pools:
            return "PoolsUnusable"
        return "NoDevices" if lacking else "NotTogether"


_NAMES: Final = {
    Reason.CLASS_SELECTOR: "classSelector",
    Reason.REQUEST_SELECTOR: "requestSelector",
    Reason.SELECTOR_ERROR: "selectorError",
    Reason.NODE: "node",
    Reason.CAPACITY: "capacity",
    Reason.IN_USE: "inUse",
    Reason.TAINT: "taint",
    Reason.COUNTERS: "counters",
    Reason.CONSTRAINT: "constraint",
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
    """Write a diagnosis, leaving out as much of its lists as its size demands."""
    for most in (_MOST_NAMED, 4, 2, 1, 0):
        text = msgspec.json.encode(shortened(diagnosis, most)).decode()
        if len(text) <= MOST_BYTES:
            return text
    bare = Diagnosis(nodes=diagnosis.nodes, reached=diagnosis.reached, counted=diagnosis.counted)
    return msgspec.json.encode(bare).decode()


def decode(text: str) -> Diagnosis | None:
    """Read a diagnosis; None if it is none, for conditions are anybody's to write."""
    try:
        return msgspec.json.decode(text, type=Diagnosis)
    except msgspec.MsgspecError:
        return None


def diagnosis_of(refused: Unallocatable, *, nodes: int, reached: int, counted: int) -> Diagnosis:
    """Return the diagnosis of a refusal over so many nodes."""
    return Diagnosis(
        nodes=nodes,
        reached=reached,
        counted=counted,
        requests=tuple(_asked(each) for each in refused.requests),
        incomplete_pools=tuple(sorted(map(str, refused.incomplete))),
        invalid_pools={str(id_): text for id_, text in sorted(refused.invalid.items())},
    )


def taint_of(found: SourcedTaint, devices: int = 1, *, lapsed: bool = False) -> Taint:
    """Write a taint down, with who set it."""
    taint = found.taint
    return Taint(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        origin=str(found.origin),
        devices=devices,
        lapsed=lapsed,
    )


def tainted_claim(claim: str, taints: Iterable[tuple[DeviceId, SourcedTaint]]) -> Blocked:
    """Return a claim that a pod should not join because of taints on its devices."""
    found = list(taints)
    device = str(found[0][0]) if found else ""
    return Blocked(claim=claim, device=device, taints=tuple(taint_of(each) for _, each in found))


def _asked(given: RequestDiagnosis) -> Asked:
    return Asked(
        claim=given.claim,
        request=given.request,
        wanted=given.wanted or 0,
        admin_access=given.admin_access,
        available=given.available,
        refused={_NAMES[each]: given.refused[each] for each in Reason if given.refused.get(each)},
        taints=tuple(map(_taint, sorted(given.taints, key=_by_taint))),
        selectors=tuple(map(_selector, sorted(given.selectors, key=_by_selector))),
        holders=tuple(map(_holder, sorted(given.holders, key=_by_holder))),
    )


def _by_taint(each: TaintCount) -> tuple[int, str, str]:
    return -each.devices, str(each.taint.origin), each.taint.taint.key


def _by_selector(each: SelectorCount) -> tuple[int, str, int]:
    return -each.devices, each.device_class, each.index


def _by_holder(each: HolderCount) -> tuple[int, str]:
    return -each.devices, each.claim


def _taint(each: TaintCount) -> Taint:
    return taint_of(each.taint, each.devices, lapsed=each.lapsed)


def _selector(each: SelectorCount) -> Selector:
    return Selector(device_class=each.device_class, index=each.index, devices=each.devices)


def _holder(each: HolderCount) -> Holder:
    return Holder(claim=each.claim, devices=each.devices)


def shortened(diagnosis: Diagnosis, most: int = _MOST_NAMED) -> Diagnosis:
    """Return a diagnosis with lists of so many at most, which say how many more there are."""
    requests = diagnosis.requests[:_MOST_REQUESTS]
    invalid = list(diagnosis.invalid_pools.items())
    incomplete, more_incomplete = _cut(diagnosis.incomplete_pools, most)
    kept, more_invalid = _cut(invalid, most)
    return msgspec.structs.replace(
        diagnosis,
        requests=tuple(_shorter(each, most) for each in requests),
        more_requests=len(diagnosis.requests) - len(requests),
        blocked=diagnosis.blocked[:_MOST_NAMED],
        incomplete_pools=incomplete,
        invalid_pools=dict(kept),
        more_pools=more_incomplete + more_invalid,
    )


def _shorter(asked: Asked, most: int) -> Asked:
    taints, more_taints = _cut(asked.taints, most)
    selectors, more_selectors = _cut(asked.selectors, most)
    holders, more_holders = _cut(asked.holders, most)
    return msgspec.structs.replace(
        asked,
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
    """Return the diagnosis of another pod that asks the same with claims of other names."""
    requests = (
        msgspec.structs.replace(each, claim=rename(each.claim)) for each in diagnosis.requests
    )
    return msgspec.structs.replace(diagnosis, requests=tuple(requests))
