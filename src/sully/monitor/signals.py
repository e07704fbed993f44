"""Records signals: finds the device of each, and writes the reports of the reporter `signals`.

The decisions are `domain/health/signals.py` and `domain/health/targets.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import inf

import msgspec
from msgspec.structs import replace

from sully.api.sully.health import report_name
from sully.api.sully.types import DeviceHealth
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.domain.health.matching import Identity, identity_of
from sully.domain.health.signal_bodies import Parsed, Unreadable
from sully.domain.health.signals import REPORTER, Result, Signal, apply
from sully.domain.health.targets import Reference, Target, UnknownDeviceError, find
from sully.machinery.errors import AlreadyExists, Conflict, NotFound
from sully.machinery.meta import ObjectMeta
from sully.runtime.clock import Clock
from sully.views.devices.device_views import ALL_NODES, SOME_NODES, node_of
from sully.views.kinds import DEVICE_HEALTH, PATCHES, SLICES
from sully.views.snapshot.loading import load
from sully.views.snapshot.snapshot import Snapshot

_WRITE = WriteOptions(field_manager="sully-signals")
_ATTEMPTS = 10
_AT_MOST_EVERY = 1.0
"""Seconds between two looks at the devices, also if unknown ones are reported all the time."""
_FRESH = 15.0
Outcome = tuple[Result, str]


def identities(snapshot: Snapshot) -> list[Identity]:
    """Return all devices of a snapshot, as signals can name them."""
    devices = []
    for device in snapshot.devices():
        node = node_of(device.published)
        devices.append(identity_of(device, "" if node in (ALL_NODES, SOME_NODES) else node))
    return devices


class _Known(msgspec.Struct):
    devices: Sequence[Identity] = ()
    reports: Sequence[DeviceHealth] = ()
    at: float = msgspec.field(default=-inf)


class SignalRecorder:
    """Writes signals into reports."""

    def __init__(self, transport: Transport, *, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._known = _Known()

    async def record(self, signals: Sequence[Parsed]) -> list[Outcome]:
        """Record signals, and return what became of each."""
        outcomes: dict[int, Outcome] = {}
        reports: dict[str, list[tuple[int, Target, Signal]]] = defaultdict(list)
        for position, parsed in enumerate(signals):
            if isinstance(parsed, Unreadable):
                outcomes[position] = (Result.INVALID, parsed.problem)
                continue
            try:
                target = await self._find(parsed.device)
            except UnknownDeviceError as error:
                outcomes[position] = (Result.UNKNOWN_DEVICE, str(error))
            else:
                reports[target.node].append((position, target, parsed.signal))
        for node, signals_of_node in reports.items():
            pairs = [(target, signal) for _, target, signal in signals_of_node]
            results = await self.write(node, pairs)
            for (position, _, _), result in zip(signals_of_node, results, strict=True):
                outcomes[position] = (result, "")
        return [outcomes[position] for position in range(len(signals))]

    async def write(self, node: str, signals: Sequence[tuple[Target, Signal]]) -> list[Result]:
        """Write the signals of one node; a concurrent change of another client is preserved."""
        key = Key("", report_name(node, REPORTER))
        for attempt in range(_ATTEMPTS):
            stored = await self._stored(key)
            spec = None if stored is None else stored.spec
            after, results = apply(spec, signals, node=node, now=self._clock.now())
            if after is None:
                return results
            try:
                if stored is None:
                    report = DeviceHealth(metadata=ObjectMeta(name=key.name), spec=after)
                    await self._transport.create(DEVICE_HEALTH, report, options=_WRITE)
                else:
                    report = replace(stored, spec=after)
                    await self._transport.update(DEVICE_HEALTH, report, options=_WRITE)
            except (AlreadyExists, Conflict, NotFound):
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return results
        raise AssertionError("unreachable")

    async def _stored(self, key: Key) -> DeviceHealth | None:
        try:
            return await self._transport.get(DEVICE_HEALTH, key)
        except NotFound:
            return None

    async def _find(self, reference: Reference) -> Target:
        if self._clock.monotonic() - self._known.at > _FRESH:
            await self._poll()
        try:
            return find(reference, self._known.devices, self._known.reports)
        except UnknownDeviceError:
            # It may be new.
            if self._clock.monotonic() - self._known.at < _AT_MOST_EVERY:
                raise
        await self._poll()
        return find(reference, self._known.devices, self._known.reports)

    async def _poll(self) -> None:
        kinds = (SLICES, PATCHES, DEVICE_HEALTH)
        snapshot = await load(self._transport, kinds, now=self._clock.now())
        reports = tuple(snapshot.of(DEVICE_HEALTH).values())
        self._known = _Known(identities(snapshot), reports, self._clock.monotonic())
