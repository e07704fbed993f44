"""Keeps the conditions of ResourceSlicePatches, and warns when an expression of one fails.

Reads patches and the inventory; writes the status of patches and events. The texts are
`domain/devices/patch_status.py`. A patch is looked at, and its status written if it changed, at
most once a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sully.api.resource.types import DeviceTaintSelector, ResourceSlicePatch
from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.devices.patch_status import (
    APPLIED,
    SELECTOR_PROBLEM,
    PatchReport,
    report,
    report_all,
)
from sully.domain.devices.rules import needs_content
from sully.domain.eviction.status import Report
from sully.machinery.meta import Condition, find_condition
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock
from sully.views.devices.changes import InventoryChange
from sully.views.devices.inventory import Inventory
from sully.views.kinds import PATCHES

NAME = "slice-patch-status-controller"
INTERVAL = timedelta(seconds=1)
SHARE = 50
"""Of the time no more than one part in so many goes into looking at one patch."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a status says of one generation of a patch."""

    generation: int
    applied: Report
    trouble: Report | None


@dataclass(slots=True)
class _State:
    """What was done about a patch since the controller started."""

    uid: str
    look_at: datetime
    """Not before; devices change in crowds."""
    said: _Said | None = None
    warned: frozenset[str] = frozenset()


class PatchStatusController:
    """Says how far patches reach."""

    name = NAME

    def __init__(
        self,
        *,
        patches: Informer[ResourceSlicePatch],
        inventory: Inventory,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._patches = patches
        self._inventory = inventory
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._options = WriteOptions(field_manager=NAME, force=True)
        self._states: dict[str, _State] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for patches, and for devices that they may be for."""
        yield Watch(self._patches, own_key)
        yield Watch(self._inventory, self._near)

    def _near(self, change: InventoryChange) -> Iterator[Key]:
        if not change.rules:
            # A rule puts taints on devices; no filter sees those.
            for patch in self._inventory.patches_for(change.pools):
                yield Key("", patch.metadata.name)

    async def reconcile(self, key: Key) -> Result:
        """Write what is to be said about a patch if it is new, and time."""
        patch = self._patches.get(key)
        if patch is None:
            self._states.pop(key.name, None)
            return DONE
        state, now = self._state(patch), self._clock.now()
        if now < state.look_at:
            return Result(requeue_after=state.look_at - now)
        found = self._look(patch, state)
        self._warn(patch, state, found)
        news = _Said(patch.metadata.generation, found.applied, found.selector_problem)
        if news != (state.said or _stands(patch)):
            await self._say(patch, news, now)
            state.said = news
        return DONE

    def _look(self, patch: ResourceSlicePatch, state: _State) -> PatchReport:
        """Count devices; where that takes long, it is done more seldom."""
        began = self._clock.monotonic()
        filter_ = patch.spec.devices.filter or DeviceTaintSelector()
        if needs_content(filter_):
            found = report(self._inventory.patch_choices(patch))
        else:
            found = report_all(self._inventory.count_named(filter_))
        took = timedelta(seconds=self._clock.monotonic() - began)
        state.look_at = self._clock.now() + max(INTERVAL, took * SHARE)
        return found

    def _state(self, patch: ResourceSlicePatch) -> _State:
        state = self._states.get(patch.metadata.name)
        if state is None or state.uid != patch.metadata.uid:
            state = _State(patch.metadata.uid, look_at=self._clock.now())
            self._states[patch.metadata.name] = state
        return state

    def _warn(self, patch: ResourceSlicePatch, state: _State, found: PatchReport) -> None:
        for text in sorted(found.failures - state.warned):
            self._recorder.event(reference(PATCHES, patch), "Warning", "CELRuntimeError", text)
        state.warned = found.failures

    async def _say(self, patch: ResourceSlicePatch, news: _Said, now: datetime) -> None:
        conditions = [_written(APPLIED, news.applied, patch, now)]
        if news.trouble is not None:
            conditions.append(_written(SELECTOR_PROBLEM, news.trouble, patch, now))
        # What is not declared any more goes away: so a problem that was solved is forgotten.
        body = {
            "metadata": {"name": patch.metadata.name, "uid": patch.metadata.uid},
            "status": {"conditions": conditions},
        }
        await self._transport.apply(PATCHES, body, self._options, "status")


def _stands(patch: ResourceSlicePatch) -> _Said | None:
    """Return what the status said before we started, in the form of what we would say."""
    applied = find_condition(patch.status.conditions, APPLIED)
    trouble = find_condition(patch.status.conditions, SELECTOR_PROBLEM)
    if applied is None:
        return None
    said = _read(trouble) if trouble is not None else None
    return _Said(applied.observed_generation, _read(applied), said)


def _read(condition: Condition) -> Report:
    return Report(condition.status, condition.reason, condition.message)


def _written(type_: str, said: Report, patch: ResourceSlicePatch, now: datetime) -> dict[str, Any]:
    before = find_condition(patch.status.conditions, type_)
    same = before is not None and before.status == said.status
    since = before.last_transition_time if before is not None and same else None
    return {
        "type": type_,
        "status": said.status,
        "reason": said.reason,
        "message": said.message,
        "observedGeneration": patch.metadata.generation,
        "lastTransitionTime": format_time(since or now),
    }
