"""Reports on ResourceSlicePatches, with a Warning event when an expression fails.

Reads patches and the inventory; writes the status of patches and events. The texts are
`domain/devices/patch_status.py`. A patch is evaluated, and its status written if it changed, at
most once a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.api.resource.types import DeviceTaintSelector, ResourceSlicePatch
from sully.api.sully.conditions import APPLIED
from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.controllers.framework.conditions import encode_condition
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.event_reasons import CEL_RUNTIME_ERROR
from sully.domain.devices.patch_status import (
    SELECTOR_PROBLEM,
    PatchReport,
    report,
    report_all,
)
from sully.domain.devices.rules import needs_content
from sully.domain.eviction.status import Report
from sully.machinery.meta import Condition, find_condition
from sully.views.devices.changes import InventoryChange
from sully.views.devices.inventory import Inventory
from sully.views.kinds import PATCHES

NAME = "slice-patch-status-controller"
INTERVAL = timedelta(seconds=1)
SHARE = 50
"""The evaluation of one patch takes at most one of so many parts of the time."""


class _ReportedStatus(msgspec.Struct, frozen=True):
    """What a status reports about one generation of a patch."""

    generation: int
    applied: Report
    selector_problem: Report | None


class _State(msgspec.Struct):
    """The state of a patch since the controller started."""

    uid: str
    due: datetime
    """When it may be evaluated next: many devices change together."""
    reported: _ReportedStatus | None = None
    warned: frozenset[str] = frozenset()


class PatchStatusController:
    """Reports to how many devices patches apply."""

    name = NAME

    def __init__(
        self,
        *,
        patches: Informer[ResourceSlicePatch],
        inventory: Inventory,
        env: ControllerEnv,
    ) -> None:
        self._patches = patches
        self._inventory = inventory
        self._transport, self._recorder, self._clock = env
        self._options = WriteOptions(field_manager=NAME, force=True)
        self._states: dict[str, _State] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for patches, and for devices that they may select."""
        yield Watch(self._patches, own_key)
        yield Watch(self._inventory, self._patches_of)

    def _patches_of(self, change: InventoryChange) -> Iterator[Key]:
        if not change.rules:
            # A rule adds taints, which filters do not select by.
            for patch in self._inventory.patches_for(change.pools):
                yield Key("", patch.metadata.name)

    async def reconcile(self, key: Key) -> Result:
        """Write the status of a patch if it changed and is due."""
        patch = self._patches.get(key)
        if patch is None:
            self._states.pop(key.name, None)
            return DONE
        state, now = self._state(patch), self._clock.now()
        if now < state.due:
            return Result(requeue_after=state.due - now)
        result = self._evaluate(patch, state)
        self._warn(patch, state, result)
        status = _ReportedStatus(patch.metadata.generation, result.applied, result.selector_problem)
        if status != (state.reported or _reported(patch)):
            await self._write(patch, status, now)
            state.reported = status
        return DONE

    def _evaluate(self, patch: ResourceSlicePatch, state: _State) -> PatchReport:
        """Count devices, less often where that takes long."""
        started = self._clock.monotonic()
        filter_ = patch.spec.devices.filter or DeviceTaintSelector()
        if needs_content(filter_):
            result = report(self._inventory.patch_choices(patch))
        else:
            result = report_all(self._inventory.count_named(filter_))
        elapsed = timedelta(seconds=self._clock.monotonic() - started)
        state.due = self._clock.now() + max(INTERVAL, elapsed * SHARE)
        return result

    def _state(self, patch: ResourceSlicePatch) -> _State:
        state = self._states.get(patch.metadata.name)
        if state is None or state.uid != patch.metadata.uid:
            state = _State(patch.metadata.uid, due=self._clock.now())
            self._states[patch.metadata.name] = state
        return state

    def _warn(self, patch: ResourceSlicePatch, state: _State, result: PatchReport) -> None:
        for text in sorted(result.failures - state.warned):
            self._recorder.event(reference(PATCHES, patch), "Warning", CEL_RUNTIME_ERROR, text)
        state.warned = result.failures

    async def _write(
        self, patch: ResourceSlicePatch, status: _ReportedStatus, now: datetime
    ) -> None:
        conditions = [_encode(APPLIED, status.applied, patch, now)]
        if status.selector_problem is not None:
            conditions.append(_encode(SELECTOR_PROBLEM, status.selector_problem, patch, now))
        # Apply removes a condition that is not in the list any more.
        body = {
            "metadata": {"name": patch.metadata.name, "uid": patch.metadata.uid},
            "status": {"conditions": conditions},
        }
        await self._transport.apply(PATCHES, body, self._options, "status")


def _reported(patch: ResourceSlicePatch) -> _ReportedStatus | None:
    """Return what the status reported before the controller started."""
    applied = find_condition(patch.status.conditions, APPLIED)
    problem = find_condition(patch.status.conditions, SELECTOR_PROBLEM)
    if applied is None:
        return None
    return _ReportedStatus(
        applied.observed_generation,
        _decode(applied),
        _decode(problem) if problem is not None else None,
    )


def _decode(condition: Condition) -> Report:
    return Report(condition.status, condition.reason, condition.message)


def _encode(type_: str, new: Report, patch: ResourceSlicePatch, now: datetime) -> dict[str, Any]:
    before = find_condition(patch.status.conditions, type_)
    same = before is not None and before.status == new.status
    since = before.last_transition_time if before is not None and same else None
    return encode_condition(
        Condition(
            type=type_,
            status=new.status,
            reason=new.reason,
            message=new.message,
            observed_generation=patch.metadata.generation,
            last_transition_time=since or now,
        )
    )
