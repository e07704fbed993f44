"""Writes the DeviceTaintRules of a policy or a maintenance: deletes, updates, creates what differs.

Like proofjobs.py for any controller that has rules for single devices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from sully.api.resource.types import DeviceTaintRule
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Transport
from sully.controllers.framework.conditions import preconditions
from sully.domain.devices.device_rules import device_of, is_current
from sully.machinery.errors import AlreadyExists, NotFound
from sully.views.kinds import RULES

Obj = dict[str, Any]

CONCURRENT: Final = 16
"""How many rules are written at the same time."""


class DeviceRuleWriter:
    """Makes the rules for single devices what has been decided."""

    def __init__(self, transport: Transport, field_manager: str) -> None:
        self._transport = transport
        self._options = WriteOptions(field_manager=field_manager)

    async def write(self, desired: Mapping[str, Obj], rules: Iterable[DeviceTaintRule]) -> None:
        """Create, update and delete rules to match the desired ones, by device.

        Rules are deleted first: never are more devices tainted than a limit allows.
        """
        existing = {device_of(rule): rule for rule in rules}
        await _all(
            [self._delete(rule) for device, rule in existing.items() if device not in desired]
        )
        writes: list[Coroutine[Any, Any, None]] = []
        for device, body in desired.items():
            rule = existing.get(device)
            if rule is None:
                writes.append(self._create(body))
            elif not is_current(rule, body):
                writes.append(self._update(body, rule))
        await _all(writes)

    async def _create(self, body: Obj) -> None:
        try:
            await self._transport.create(RULES, body, options=self._options)
        except AlreadyExists:
            # The cache has not seen it yet; its event brings the owner back here.
            return

    async def _update(self, desired: Obj, rule: DeviceTaintRule) -> None:
        guard = preconditions(rule.metadata)["metadata"]
        metadata = {name: desired["metadata"][name] for name in ("labels", "annotations")}
        metadata["ownerReferences"] = desired["metadata"]["ownerReferences"] or None
        patch = {"metadata": {**guard, **metadata}, "spec": {"taint": desired["spec"]["taint"]}}
        await self._transport.patch(RULES, key_of(rule), patch, options=self._options)

    async def _delete(self, rule: DeviceTaintRule) -> None:
        try:
            options = DeleteOptions(uid=rule.metadata.uid)
            await self._transport.delete(RULES, key_of(rule), options)
        except NotFound:
            return


async def _all(writes: list[Coroutine[Any, Any, None]]) -> None:
    """Run writes, some at a time; the first failure is raised when all have ended."""
    failures: list[BaseException] = []
    for start in range(0, len(writes), CONCURRENT):
        results = await asyncio.gather(*writes[start : start + CONCURRENT], return_exceptions=True)
        failures.extend(result for result in results if result is not None)
    if failures:
        raise failures[0]
