"""A snapshot as explanations read it: who set what, who holds what, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Any

from sully.api.resource.claim_types import DeviceRequestAllocationResult, ResourceClaim
from sully.api.sully.types import EvictionRecord, TaintRecord
from sully.client.objects import key_of
from sully.client.transport import Kind
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import Choice, recorded, sourced
from sully.domain.devices.taints import SourcedTaint
from sully.domain.explaining.holdings import Holding
from sully.domain.explaining.sources import Sources
from sully.explaining.attempts import Attempts
from sully.explaining.hub import Hub
from sully.views.devices.exposures import Exposures
from sully.views.kinds import EVICTION_RECORDS, PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.kinds import NODES, SCHEDULING
from sully.views.snapshot.snapshot import Snapshot


class World:
    """What there was at one moment."""

    def __init__(self, snapshot: Snapshot, *, everything: bool = True) -> None:
        self.snapshot = snapshot
        self._everything = everything and not any(map(self._hides, SCHEDULING))
        """Whether it has all that the scheduler looks at, in all namespaces."""

    def _hides(self, kind: Kind[Any]) -> bool:
        gap = self.snapshot.gap(kind)
        return gap is not None and gap.why == "not allowed"

    @cached_property
    def blind(self) -> bool:
        """Say whether taints of devices cannot be seen by who asks."""
        return self._hides(SLICES) or self._hides(RULES) or self._hides(PATCHES)

    @property
    def now(self) -> datetime:
        """Return the moment."""
        return self.snapshot.taken

    @cached_property
    def sources(self) -> Sources:
        """Return who set which taint."""
        return Sources(
            self.snapshot.of(RULES).values(),
            self.snapshot.of(PATCHES).values(),
            self.snapshot.of(SLICES).values(),
            self.snapshot.of(TAINT_RECORDS).values(),
        )

    @property
    def exposures(self) -> Exposures:
        """Return who is on which tainted device."""
        return self.snapshot.exposures

    @cached_property
    def attempts(self) -> Attempts | None:
        """Return a scheduler to try things with; None where not everything is known."""
        known = self._everything and self.snapshot.gap(NODES) is None
        return Attempts(self.snapshot) if known else None

    @cached_property
    def hub(self) -> Hub:
        """Return the clusters and placements."""
        return Hub(self.snapshot)

    # Devices

    def taints(
        self, device: DeviceId, claims: Iterable[ResourceClaim] = ()
    ) -> tuple[SourcedTaint, ...]:
        """Return the taints of a device; of one that is not published, those of rules."""
        found = self.snapshot.inventory.device(device)
        if found is not None:
            return found.taints
        known = (recorded(each.metadata.annotations).get(str(device)) for each in claims)
        content = next((each for each in known if each is not None), None)
        return tuple(map(sourced, self.snapshot.inventory.rules_for(device, content)))

    def holdings(self, claims: Iterable[ResourceClaim]) -> tuple[Holding, ...]:
        """Return the devices that claims have."""
        return tuple(self.holding(claim, each) for claim in claims for each in _results(claim))

    def holding(self, claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Holding:
        """Return one device that a claim has."""
        device = DeviceId(result.driver, result.pool, result.device)
        users = [pod for pod in self.snapshot.usage.holders(claim) if not pod.finished]
        return Holding(
            device=device,
            claim=str(key_of(claim)),
            request=result.request,
            taints=self.taints(device, (claim,)),
            tolerations=result.tolerations,
            # Nobody can say so who may not see what is published.
            published=self._hides(SLICES) or self.snapshot.inventory.published(device) is not None,
            pods=tuple(str(key_of(pod)) for pod in users),
            leaving=tuple(str(key_of(pod)) for pod in users if pod.leaving),
            admin=bool(result.admin_access),
        )

    # Memory

    def evictions(self, wanted: Callable[[EvictionRecord], bool]) -> tuple[EvictionRecord, ...]:
        """Return the records of evictions that somebody asks about, in order of time."""
        found = filter(wanted, self.snapshot.of(EVICTION_RECORDS).values())
        return tuple(sorted(found, key=lambda each: each.spec.evicted_time))

    def taint_records(self, rule: str) -> list[TaintRecord]:
        """Return the records of all rules that ever had a name, the newest last."""
        found = [
            each for each in self.snapshot.of(TAINT_RECORDS).values() if each.spec.rule.name == rule
        ]
        return sorted(found, key=lambda each: each.spec.added_time)


def choices_text(found: Iterable[tuple[DeviceId, Choice]]) -> str:
    """Say of how many devices criteria could not tell whether they fit, and why of the first."""
    problems = [(device, choice.problem) for device, choice in found if choice.problem]
    if not problems:
        return ""
    device, problem = problems[0]
    return f"{device}: {problem}" + (f" (and {len(problems) - 1} more)" if problems[1:] else "")


def _results(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    if claim.status.allocation is not None:
        yield from claim.status.allocation.devices.results
