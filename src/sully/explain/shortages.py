"""The diagnosis of a pod that gets no devices, as notes: what each request lacks, and why.

The diagnosis (`domain/scheduling/diagnosis.py`) has the numbers; the claims have what they are
about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from sully.api.resource.types import (
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from sully.domain.allocation.requests import claim_key
from sully.domain.devices.rules import Classes
from sully.domain.devices.taints import expires
from sully.domain.scheduling.diagnosis import (
    BlockingTaint,
    Diagnosis,
    RequestAccount,
    UnmatchedSelector,
)
from sully.domain.scheduling.extended import NAMELESS, Extension
from sully.domain.tolerations import mismatched_field, taint_text
from sully.explain.causes import Note, note
from sully.explain.explanation import Table
from sully.explain.sources import Sources
from sully.explain.text import constraint_text, toleration_text

_REASONS: Final = (
    "constraint",
    "counters",
    "capacity",
    "taint",
    "inUse",
    "selectorError",
    "requestSelector",
    "classSelector",
    "node",
)
"""From what is closest to a device that fits to what is farthest from it."""
_ADVICE: Final = ("constraint", "counters", "capacity", "taint", "inUse", "node", "selectorError")
"""In the same order; the rest are of another kind than is requested."""
_SHORTAGES: Final = {
    "SelectorsExclude": "requestSelector",
    "SelectorsFail": "selectorError",
    "CapacityTooSmall": "capacity",
}
"""Shortages that name the requests with a reason."""
_MAX_NOTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpec:
    """What a request states about the devices that it needs."""

    device_class: str = ""
    class_selectors: tuple[DeviceSelector, ...] = ()
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    constraints: tuple[str, ...] = ()
    resource: str = ""
    """The extended resource that it stands for, where it is not part of a claim."""

    def expression(self, selector: UnmatchedSelector) -> str:
        """Return the expression of a selector that a diagnosis names by its index."""
        selectors = self.class_selectors if selector.device_class else self.selectors
        cel = selectors[selector.index].cel if selector.index < len(selectors) else None
        return cel.expression if cel is not None else ""


_UNKNOWN: Final = RequestSpec()
RequestSpecs = Mapping[tuple[str, str], RequestSpec]
"""By claim, as `namespace/name`, and request, as `name` or `name/alternative`."""


def request_specs(
    claims: Iterable[ResourceClaim], classes: Classes, extension: Extension | None = None
) -> RequestSpecs:
    """Read what claims request, and what extended resources stand for."""
    specs = {
        (claim_key(claim), name): spec for claim in claims for name, spec in _of(claim, classes)
    }
    if extension is not None:
        key = claim_key(extension.claim)
        resources = {mapping.request: mapping.resource for mapping in extension.mappings}
        for name, spec in _of(extension.claim, classes):
            specs[key, name] = replace(spec, resource=resources.get(name, ""))
    return specs


def exact_requests(
    claim: ResourceClaim,
) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    """Yield the requests of a claim, and each alternative of a request, with their names."""
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield request.name, request.exactly
        else:
            yield from ((f"{request.name}/{x.name}", x) for x in request.first_available)


def _of(claim: ResourceClaim, classes: Classes) -> Iterator[tuple[str, RequestSpec]]:
    constraints = claim.spec.devices.constraints
    for name, request in exact_requests(claim):
        class_ = classes(request.device_class_name)
        yield (
            name,
            RequestSpec(
                device_class=request.device_class_name,
                class_selectors=class_.spec.selectors if class_ is not None else (),
                selectors=request.selectors,
                tolerations=request.tolerations,
                constraints=tuple(_constraints(name.partition("/")[0], constraints)),
            ),
        )


def _constraints(request: str, constraints: Iterable[DeviceConstraint]) -> Iterator[str]:
    for constraint in constraints:
        names = {name.partition("/")[0] for name in constraint.requests}
        if not names or request in names:
            yield constraint_text(constraint)


def merged_taints(requests: Iterable[RequestAccount]) -> list[BlockingTaint]:
    """Return the taints that any request does not tolerate, the one on the most devices first."""
    merged: dict[tuple[str, str], BlockingTaint] = {}
    for request in requests:
        for taint in request.taints:
            key = (taint.origin, taint_text(taint))
            if key not in merged or merged[key].devices < taint.devices:
                merged[key] = taint
    return sorted(
        merged.values(), key=lambda taint: (-taint.devices, taint.origin, taint_text(taint))
    )


def merged_holders(requests: Iterable[RequestAccount]) -> dict[str, int]:
    """Return the claims with devices that any request could use and how many, the most first."""
    merged: dict[str, int] = {}
    for request in requests:
        for holder in request.holders:
            merged[holder.claim] = max(merged.get(holder.claim, 0), holder.devices)
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))


def _devices(request: RequestAccount, spec: RequestSpec, reason: str) -> Note:
    """Return how many devices a request cannot have for a reason, and what that is about."""
    own = next((selector for selector in request.selectors if not selector.device_class), None)
    holders = request.holders
    if reason != "inUse" and request.refused.get("inUse"):
        holders = ()
    return note(
        f"Refused/{reason}",
        count=request.refused[reason],
        holders=[f"{holder.claim} ({holder.devices})" for holder in holders],
        device_class=spec.device_class,
        selector=spec.expression(own) if own is not None else "",
        index=str(own.index) if own is not None else "",
        constraints=spec.constraints,
    )


def _distinct(notes: Iterable[Note]) -> list[Note]:
    distinct: list[Note] = []
    for x in notes:
        distinct += [x] if x not in distinct else []
    return distinct


class ShortageReader(msgspec.Struct, frozen=True):
    diagnosis: Diagnosis
    specs: RequestSpecs
    sources: Sources

    def _spec(self, request: RequestAccount) -> RequestSpec:
        return self.specs.get((request.claim, request.request), _UNKNOWN)

    def resource(self, request: RequestAccount) -> str:
        return self._spec(request).resource

    def shortage(self, reason: str = "") -> Note:
        """Return what is short, by reason."""
        short, diagnosis = self.diagnosis.short, self.diagnosis
        return note(
            reason or diagnosis.reason,
            sources=self.sources.of_all(taint.origin for taint in merged_taints(short)),
            claims=list(merged_holders(short)),
            constraints=list(dict.fromkeys(x for y in short for x in self._spec(y).constraints)),
            classes=sorted({self._spec(request).device_class for request in short} - {""}),
            requests=self._refused(_SHORTAGES.get(reason or diagnosis.reason, "")),
            invalid=list(diagnosis.invalid_pools),
            incomplete=diagnosis.incomplete_pools,
        )

    def _refused(self, reason: str) -> list[str]:
        short = self.diagnosis.short
        return list(
            dict.fromkeys(request.request for request in short if request.refused.get(reason))
        )

    # -- what each request lacks ------------------------------------------------------------------

    def notes(self) -> Iterator[Note]:
        """Yield what each request lacks, and which taints it does not tolerate."""
        diagnosis, short = self.diagnosis, self.diagnosis.short
        yield from map(self._request, short[:_MAX_NOTES])
        if len(short) > _MAX_NOTES:
            yield note("MoreRequests", count=len(short) - _MAX_NOTES)
        taints = merged_taints(short)
        for taint in taints[:_MAX_NOTES]:
            fact = self.sources.taint(taint, taint.origin)
            yield note("TaintedDevices", devices=taint.devices, taint=fact)
        if len(taints) > _MAX_NOTES:
            yield note("MoreTaints", count=len(taints) - _MAX_NOTES)
        yield from _distinct(self._mismatches(short))[:_MAX_NOTES]
        if diagnosis.incomplete_pools:
            yield note("IncompletePools", pools=diagnosis.incomplete_pools)
        for pool, error in diagnosis.invalid_pools.items():
            yield note("InvalidPool", pool=pool, error=error)

    def _request(self, request: RequestAccount) -> Note:
        spec = self._spec(request)
        return note(
            "RequestShortage",
            request=request.request,
            claim=request.claim,
            resource=spec.resource,
            wanted=request.wanted,
            available=request.available,
            device_class=spec.device_class,
            nothing=not (request.available or sum(request.refused.values())),
            apart=bool(request.wanted) and request.available >= request.wanted,
            refused=[_devices(request, spec, x) for x in _REASONS if request.refused.get(x)],
        )

    def _mismatches(self, short: Iterable[RequestAccount]) -> Iterator[Note]:
        """Yield tolerations that were written for a taint, and do not tolerate it."""
        for request in short:
            for taint in request.taints:
                for toleration in self._spec(request).tolerations:
                    differs = mismatched_field(toleration, taint)
                    expired = differs is None and taint.expired and expires(toleration)
                    if expired or (differs is not None and toleration.key == taint.key):
                        yield note(
                            "TolerationMismatch",
                            request=request.request,
                            toleration=toleration_text(toleration),
                            taint=taint_text(taint),
                            differs=differs or "",
                        )

    # -- what to look at --------------------------------------------------------------------------

    def advice(self) -> Iterator[Note]:
        """Yield what to look at where no change that was tried helps."""
        diagnosis = self.diagnosis
        if diagnosis.reason == "PoolsUnusable":
            if diagnosis.invalid_pools:
                yield Note("InvalidPools", {"pools": list(diagnosis.invalid_pools)}, remedy=True)
            if diagnosis.incomplete_pools:
                yield Note("IncompletePools", {"pools": diagnosis.incomplete_pools}, remedy=True)
            return
        yield from _distinct(filter(None, map(self._advice, diagnosis.lacking)))
        if not diagnosis.lacking and diagnosis.requests:
            yield note("RequestsTogether")

    def _advice(self, request: RequestAccount) -> Note | None:
        spec, refused = self._spec(request), request.refused
        selector = next(map(spec.expression, request.selectors), "")
        about = {"request": request.request, "resource": spec.resource}
        match next((reason for reason in _ADVICE if refused.get(reason)), ""):
            case "taint" if request.claim.endswith(NAMELESS):
                return note("Advice/extended")
            case "constraint":
                return note("Advice/constraint", constraints=spec.constraints)
            case "capacity":
                return note("Advice/capacity", **about)
            case "counters" | "node" | "selectorError" as reason:
                return note(f"Advice/{reason}")
            case "" if selector:
                return note("Advice/selector", selector=selector)
            case "" if not request.available:
                class_ = spec.device_class
                return None if refused else note("Advice/driver", device_class=class_)
            case _:
                return note("Advice/add" if request.wanted == 1 else "Advice/fewer", **about)

    # -- all numbers ------------------------------------------------------------------------------

    def tables(self) -> tuple[Table, ...]:
        requests = self.diagnosis.requests
        return (
            Table(
                "Requests",
                ("claim", "request", "class", "count", "available", "refused"),
                tuple(map(self._row, requests)),
            ),
            Table(
                "Taints that are not tolerated",
                ("taint", "origin", "devices"),
                tuple((taint_text(x), x.origin, str(x.devices)) for x in merged_taints(requests)),
            ),
            Table(
                "Devices in use",
                ("claim", "devices"),
                tuple((claim, str(devices)) for claim, devices in merged_holders(requests).items()),
            ),
            Table(
                "Selectors",
                ("of", "expression", "excludes"),
                # Requests for the same class have the same text.
                tuple(dict.fromkeys(self._selector_rows())),
            ),
        )

    def _row(self, request: RequestAccount) -> tuple[str, ...]:
        return (
            request.claim,
            request.request,
            self._spec(request).device_class,
            str(request.wanted) if request.wanted else "all",
            str(request.available),
            ", ".join(
                f"{name} {request.refused[name]}" for name in _REASONS if request.refused.get(name)
            ),
        )

    def _selector_rows(self) -> Iterator[tuple[str, ...]]:
        for request in self.diagnosis.requests:
            for selector in request.selectors:
                of = f"class {selector.device_class}" if selector.device_class else request.request
                yield of, self._spec(request).expression(selector), str(selector.devices)
