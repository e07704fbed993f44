"""The account of a pod that gets no devices, as notes: what each request lacks, and why.

The diagnosis (`domain/scheduling/diagnosis.py`) has the numbers; the claims have what they are
about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sully.api.resource.types import (
    DeviceConstraint,
    DeviceSelector,
    DeviceToleration,
    ResourceClaim,
)
from sully.domain.allocation.requests import claim_key
from sully.domain.allocation.toleration_expiry import expires
from sully.domain.devices.rules import Classes
from sully.domain.scheduling.diagnosis import Diagnosis, RequestAccount, Selector, Taint
from sully.domain.scheduling.extended import NAMELESS, Extension
from sully.domain.tolerations import mismatched_field
from sully.explain.causes import Note, note
from sully.explain.explanation import Table
from sully.explain.sources import Sources
from sully.explain.text import constraint_text, taint_text, toleration_text

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
    """What a request says of the devices that it needs."""

    device_class: str = ""
    class_selectors: tuple[DeviceSelector, ...] = ()
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    constraints: tuple[str, ...] = ()
    resource: str = ""
    """The extended resource that it stands for, where it is not part of a claim."""

    def expression(self, selector: Selector) -> str:
        """Return the expression of a selector that an account names by its index."""
        known = self.class_selectors if selector.device_class else self.selectors
        cel = known[selector.index].cel if selector.index < len(known) else None
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


def _of(claim: ResourceClaim, classes: Classes) -> Iterator[tuple[str, RequestSpec]]:
    devices = claim.spec.devices
    for request in devices.requests or ():
        given = (request.exactly,) if request.exactly is not None else request.first_available
        for exact in given:
            name = getattr(exact, "name", "")
            class_ = classes(exact.device_class_name)
            yield (
                f"{request.name}/{name}" if name else request.name,
                RequestSpec(
                    device_class=exact.device_class_name,
                    class_selectors=class_.spec.selectors if class_ is not None else (),
                    selectors=exact.selectors,
                    tolerations=exact.tolerations,
                    constraints=tuple(_constraints(request.name, devices.constraints)),
                ),
            )


def _constraints(request: str, constraints: Iterable[DeviceConstraint]) -> Iterator[str]:
    for constraint in constraints:
        names = {name.partition("/")[0] for name in constraint.requests}
        if not names or request in names:
            yield constraint_text(constraint)


def merged_taints(requests: Iterable[RequestAccount]) -> list[Taint]:
    """Return the taints that any request does not tolerate, the one on the most devices first."""
    found: dict[tuple[str, str], Taint] = {}
    for request in requests:
        for taint in request.taints:
            key = (taint.origin, taint_text(taint))
            if key not in found or found[key].devices < taint.devices:
                found[key] = taint
    return sorted(
        found.values(), key=lambda taint: (-taint.devices, taint.origin, taint_text(taint))
    )


def merged_holders(requests: Iterable[RequestAccount]) -> dict[str, int]:
    """Return the claims with devices that any request could use and how many, the most first."""
    found: dict[str, int] = {}
    for request in requests:
        for holder in request.holders:
            found[holder.claim] = max(found.get(holder.claim, 0), holder.devices)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _devices(asked: RequestAccount, spec: RequestSpec, reason: str) -> Note:
    """Return how many devices a request cannot have for a reason, and what that is about."""
    own = next((selector for selector in asked.selectors if not selector.device_class), None)
    holders = asked.holders
    if reason != "inUse" and asked.refused.get("inUse"):
        holders = ()
    return note(
        f"Refused/{reason}",
        count=asked.refused[reason],
        holders=[f"{holder.claim} ({holder.devices})" for holder in holders],
        device_class=spec.device_class,
        selector=spec.expression(own) if own is not None else "",
        index=str(own.index) if own is not None else "",
        constraints=spec.constraints,
    )


def _distinct(notes: Iterable[Note]) -> list[Note]:
    found: list[Note] = []
    for each in notes:
        found += [each] if each not in found else []
    return found


@dataclass(frozen=True, slots=True)
class AccountReader:
    account: Diagnosis
    specs: RequestSpecs
    sources: Sources

    def _spec(self, request: RequestAccount) -> RequestSpec:
        return self.specs.get((request.claim, request.request), _UNKNOWN)

    def resource(self, request: RequestAccount) -> str:
        return self._spec(request).resource

    def shortage(self, reason: str = "") -> Note:
        """Return what is short, by the word for the reason."""
        short, account = self.account.short, self.account
        return note(
            reason or account.reason,
            sources=self.sources.of_all(taint.origin for taint in merged_taints(short)),
            claims=list(merged_holders(short)),
            constraints=list(dict.fromkeys(x for y in short for x in self._spec(y).constraints)),
            classes=sorted({self._spec(asked).device_class for asked in short} - {""}),
            requests=self._refused(_SHORTAGES.get(reason or account.reason, "")),
            invalid=list(account.invalid_pools),
            incomplete=account.incomplete_pools,
        )

    def _refused(self, reason: str) -> list[str]:
        short = self.account.short
        return list(dict.fromkeys(asked.request for asked in short if asked.refused.get(reason)))

    # -- what each request lacks ------------------------------------------------------------------

    def notes(self) -> Iterator[Note]:
        """Yield what each request lacks, and which taints it does not tolerate."""
        account, short = self.account, self.account.short
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
        if account.incomplete_pools:
            yield note("IncompletePools", pools=account.incomplete_pools)
        for pool, error in account.invalid_pools.items():
            yield note("InvalidPool", pool=pool, error=error)

    def _request(self, asked: RequestAccount) -> Note:
        spec = self._spec(asked)
        return note(
            "RequestShortage",
            request=asked.request,
            claim=asked.claim,
            resource=spec.resource,
            wanted=asked.wanted,
            available=asked.available,
            device_class=spec.device_class,
            nothing=not (asked.available or sum(asked.refused.values())),
            apart=bool(asked.wanted) and asked.available >= asked.wanted,
            refused=[_devices(asked, spec, x) for x in _REASONS if asked.refused.get(x)],
        )

    def _mismatches(self, short: Iterable[RequestAccount]) -> Iterator[Note]:
        """Yield tolerations that were written for a taint, and do not tolerate it."""
        for asked in short:
            for taint in asked.taints:
                for toleration in self._spec(asked).tolerations:
                    differs = mismatched_field(toleration, taint)
                    expired = differs is None and taint.expired and expires(toleration)
                    if expired or (differs is not None and toleration.key == taint.key):
                        yield note(
                            "TolerationMismatch",
                            request=asked.request,
                            toleration=toleration_text(toleration),
                            taint=taint_text(taint),
                            differs=differs or "",
                        )

    # -- what to look at --------------------------------------------------------------------------

    def advice(self) -> Iterator[Note]:
        """Yield what to look at where no change that was tried helps."""
        account = self.account
        if account.reason == "PoolsUnusable":
            if account.invalid_pools:
                yield Note("InvalidPools", {"pools": list(account.invalid_pools)}, remedy=True)
            if account.incomplete_pools:
                yield Note("IncompletePools", {"pools": account.incomplete_pools}, remedy=True)
            return
        yield from _distinct(filter(None, map(self._advice, account.lacking)))
        if not account.lacking and account.requests:
            yield note("RequestsTogether")

    def _advice(self, asked: RequestAccount) -> Note | None:
        spec, refused = self._spec(asked), asked.refused
        selector = next(map(spec.expression, asked.selectors), "")
        about = {"request": asked.request, "resource": spec.resource}
        match next((reason for reason in _ADVICE if refused.get(reason)), ""):
            case "taint" if asked.claim.endswith(NAMELESS):
                return note("Advice/extended")
            case "constraint":
                return note("Advice/constraint", constraints=spec.constraints)
            case "capacity":
                return note("Advice/capacity", **about)
            case "counters" | "node" | "selectorError" as reason:
                return note(f"Advice/{reason}")
            case "" if selector:
                return note("Advice/selector", selector=selector)
            case "" if not asked.available:
                class_ = spec.device_class
                return None if refused else note("Advice/driver", device_class=class_)
            case _:
                return note("Advice/add" if asked.wanted == 1 else "Advice/fewer", **about)

    # -- all numbers ------------------------------------------------------------------------------

    def tables(self) -> tuple[Table, ...]:
        requests = self.account.requests
        return (
            Table(
                "Requests",
                ("claim", "request", "class", "wanted", "available", "refused"),
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
                # Requests for the same class say the same.
                tuple(dict.fromkeys(self._selector_rows())),
            ),
        )

    def _row(self, asked: RequestAccount) -> tuple[str, ...]:
        return (
            asked.claim,
            asked.request,
            self._spec(asked).device_class,
            str(asked.wanted) if asked.wanted else "all",
            str(asked.available),
            ", ".join(
                f"{name} {asked.refused[name]}" for name in _REASONS if asked.refused.get(name)
            ),
        )

    def _selector_rows(self) -> Iterator[tuple[str, ...]]:
        for asked in self.account.requests:
            for selector in asked.selectors:
                of = f"class {selector.device_class}" if selector.device_class else asked.request
                yield of, self._spec(asked).expression(selector), str(selector.devices)
