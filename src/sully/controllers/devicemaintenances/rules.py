"""Writes the DeviceTaintRules of a maintenance: deletes, updates and creates what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sully.api.resource.types import DeviceTaintRule
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Transport
from sully.controllers.conditions import preconditions
from sully.domain.maintenance.rules import device_of, is_current
from sully.machinery.errors import AlreadyExists, NotFound
from sully.views.kinds import RULES

Obj = dict[str, Any]


class MaintenanceRules:
    """Makes the rules of a maintenance what its decisions are."""

    def __init__(self, transport: Transport, field_manager: str) -> None:
        self._transport = transport
        self._options = WriteOptions(field_manager=field_manager)

    async def write(self, wanted: Mapping[str, Obj], rules: Iterable[DeviceTaintRule]) -> None:
        """Give devices back, then close others: never more than the limit at the same time."""
        existing = {device_of(rule): rule for rule in rules}
        for device, rule in sorted(existing.items()):
            if device not in wanted:
                await self._delete(rule)
        for device, body in sorted(wanted.items()):
            current = existing.get(device)
            if current is None:
                await self._create(body)
            elif not is_current(current, body):
                await self._update(body, current)

    async def _create(self, body: Obj) -> None:
        try:
            await self._transport.create(RULES, body, options=self._options)
        except AlreadyExists:
            # The cache has not seen it yet; its event brings the maintenance back here.
            return

    async def _update(self, wanted: Obj, rule: DeviceTaintRule) -> None:
        guard = preconditions(rule.metadata)["metadata"]
        names = ("labels", "annotations", "ownerReferences")
        metadata = {name: wanted["metadata"][name] for name in names}
        patch = {"metadata": {**guard, **metadata}, "spec": {"taint": wanted["spec"]["taint"]}}
        await self._transport.patch(RULES, key_of(rule), patch, options=self._options)

    async def _delete(self, rule: DeviceTaintRule) -> None:
        try:
            options = DeleteOptions(uid=rule.metadata.uid)
            await self._transport.delete(RULES, key_of(rule), options)
        except NotFound:
            return
