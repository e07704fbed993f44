"""Writes the rules by which a policy suppresses taints of drivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from sully.api.resource.types import DeviceTaintRule
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Transport
from sully.controllers.conditions import preconditions
from sully.domain.devicepolicies.states import Notice
from sully.domain.devicepolicies.suppression import Suppressed, is_current
from sully.machinery.errors import AlreadyExists, NotFound
from sully.machinery.timestamps import format_time
from sully.views.kinds import RULES

Obj = dict[str, Any]


class SuppressionWriter:
    """Makes the suppressing rules of a policy what its decisions are."""

    def __init__(self, transport: Transport, field_manager: str) -> None:
        self._transport = transport
        self._options = WriteOptions(field_manager=field_manager)

    async def write(self, wanted: Iterable[Obj], rules: Iterable[DeviceTaintRule]) -> None:
        """Create, update and delete rules."""
        existing = {rule.metadata.name: rule for rule in rules}
        for body in wanted:
            rule = existing.pop(body["metadata"]["name"], None)
            if rule is None:
                await self._create(body)
            elif not is_current(rule, body):
                await self._update(body, rule)
        for rule in existing.values():
            await self._delete(rule)

    async def _create(self, wanted: Obj) -> None:
        try:
            await self._transport.create(RULES, wanted, options=self._options)
        except AlreadyExists:
            # The cache has not seen it yet; its event brings the policy back here.
            return

    async def _update(self, wanted: Obj, rule: DeviceTaintRule) -> None:
        guard = preconditions(rule.metadata)["metadata"]
        names = ("labels", "annotations", "ownerReferences")
        metadata = {name: wanted["metadata"][name] for name in names}
        # A merge patch would keep criteria that are gone.
        old = msgspec.to_builtins(rule.spec.device_selector or {})
        selector = {**dict.fromkeys(old), **wanted["spec"]["deviceSelector"]}
        patch = {"metadata": {**guard, **metadata}, "spec": {"deviceSelector": selector}}
        await self._transport.patch(RULES, key_of(rule), patch, options=self._options)

    async def _delete(self, rule: DeviceTaintRule) -> None:
        try:
            options = DeleteOptions(uid=rule.metadata.uid)
            await self._transport.delete(RULES, key_of(rule), options)
        except NotFound:
            return


def changes(
    old: Mapping[str, tuple[Suppressed, ...]], new: Mapping[str, tuple[Suppressed, ...]]
) -> Iterator[tuple[str, Notice]]:
    """Yield what to tell people, by device."""
    for device in sorted({*old, *new}):
        begun = [one for one in new.get(device, ()) if one not in old.get(device, ())]
        if begun:
            texts = (f"{one.taint} until {format_time(one.until)}" for one in begun)
            text = f"The driver's taint has no effect: {', '.join(texts)}"
            yield device, Notice("TaintSuppressed", text)
        if device not in new:
            text = "Taints of the driver are not suppressed any more"
            yield device, Notice("SuppressionEnded", text)
