"""Writes the DeviceTaintRules of a policy: creates, updates and deletes what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DeviceTaintPolicy
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Transport
from sully.controllers.conditions import preconditions
from sully.domain.devicepolicies.rules import build_rule, decode_state, is_current
from sully.domain.devicepolicies.states import DeviceState, has_rule
from sully.machinery.errors import AlreadyExists, NotFound
from sully.views.kinds import RULES

CONCURRENT: Final = 16
"""How many rules are written at the same time."""


class RuleWriter:
    """Makes the rules of a policy what its decisions are."""

    def __init__(self, transport: Transport, field_manager: str) -> None:
        self._transport = transport
        self._options = WriteOptions(field_manager=field_manager)

    async def write(
        self,
        policy: DeviceTaintPolicy,
        states: Mapping[str, DeviceState],
        rules: Iterable[DeviceTaintRule],
    ) -> None:
        """Create, update and delete rules."""
        existing = {decode_state(rule).device: rule for rule in rules}
        writes: list[Coroutine[Any, Any, None]] = []
        for device, state in states.items():
            rule = existing.pop(device, None)
            if not has_rule(state):
                if rule is not None:
                    writes.append(self._delete(rule))
            elif rule is None:
                writes.append(self._create(policy, state))
            elif not is_current(policy, state, rule):
                writes.append(self._update(policy, state, rule))
        writes.extend(map(self._delete, existing.values()))
        await _all(writes)

    async def _create(self, policy: DeviceTaintPolicy, state: DeviceState) -> None:
        try:
            await self._transport.create(RULES, build_rule(policy, state), options=self._options)
        except AlreadyExists:
            # The cache has not seen it yet; its event brings the policy back here.
            return

    async def _update(
        self, policy: DeviceTaintPolicy, state: DeviceState, rule: DeviceTaintRule
    ) -> None:
        wanted = build_rule(policy, state)
        guard = preconditions(rule.metadata)["metadata"]
        metadata = {name: wanted["metadata"][name] for name in ("labels", "annotations")}
        metadata["ownerReferences"] = wanted["metadata"]["ownerReferences"] or None
        patch = {"metadata": {**guard, **metadata}, "spec": {"taint": wanted["spec"]["taint"]}}
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
