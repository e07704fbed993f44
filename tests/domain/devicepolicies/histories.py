"""A policy over time: what is observed of devices, second by second, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from sully.domain.devicepolicies.decisions import (
    PolicyContext,
    PolicyDecision,
    decide,
    unavailable_devices,
)
from sully.domain.devicepolicies.limits import Groups, LimitGroup
from sully.domain.devicepolicies.settings import MAJOR, PolicySettings
from sully.domain.devicepolicies.states import DeviceState, Fault, Notice, Observation
from sully.testing.clock import NOON


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def name(number: int) -> str:
    return f"gpu.example.com/node-{number // 2}/gpu-{number % 2}"


@dataclass
class History:
    """The devices of one policy, and its decisions so far."""

    settings: PolicySettings
    devices: int = 1
    now: datetime = NOON
    seen: dict[str, Observation] = field(default_factory=dict)
    states: dict[str, DeviceState] = field(default_factory=dict)
    storm_since: datetime | None = None
    resumed_at: datetime | None = None
    notices: list[tuple[str, Notice]] = field(default_factory=list)
    last: PolicyDecision | None = None

    def __post_init__(self) -> None:
        self.seen = {name(number): Observation(identity="a") for number in range(self.devices)}

    def groups(self) -> Groups:
        """Count all devices together, and those of a node."""
        of: dict[str, tuple[LimitGroup, ...]] = {}
        sizes: dict[LimitGroup, int] = {}
        for device in sorted({*self.seen, *self.states}):
            pool = device.split("/")[1]
            of[device] = tuple(
                LimitGroup(index, "" if limit.scope == "Fleet" else pool)
                for index, limit in enumerate(self.settings.limits)
            )
            for group in of[device]:
                sizes[group] = sizes.get(group, 0) + 1
        return Groups(self.devices, sizes, of)

    def observe(self, device: str, **changes: object) -> None:
        old = self.seen.get(device, Observation())
        self.seen[device] = replace(old, **changes)

    def fail(self, device: str, severity: int = MAJOR, source: str = "xid") -> None:
        self.observe(device, faults=(Fault(source, severity),), known=True)

    def recover(self, device: str) -> None:
        self.observe(device, faults=(), known=True)

    def clear(self, device: str) -> None:
        self.observe(device, cleared_at=self.now)

    def decide(self, order: Iterable[str] = ()) -> PolicyDecision:
        seen = {device: self.seen[device] for device in order or self.seen}
        context = PolicyContext(
            groups=self.groups(),
            storm_since=self.storm_since,
            resumed_at=self.resumed_at,
            now=self.now,
        )
        decision = decide(self.settings, self.states, seen, context)
        self.notices.extend(decision.notices.items())
        self.states, self.storm_since = dict(decision.states), decision.storm_since
        self.last = decision
        return decision

    def wait(self, seconds: float) -> None:
        """Let time pass, with a decision whenever the last one asked for it."""
        end = self.now + timedelta(seconds=seconds)
        for _ in range(1000):
            decision = self.decide()
            if decision.requeue_at is None or decision.requeue_at > end:
                break
            assert decision.requeue_at > self.now, "a decision asks to be repeated immediately"
            self.now = decision.requeue_at
        else:
            raise AssertionError("the decisions do not come to an end")
        self.now = end
        self.decide()

    def unavailable(self) -> list[str]:
        return unavailable_devices(self.states.values())

    def phase(self, device: str) -> str:
        state = self.states.get(device)
        return f"{state.phase}/{state.effect}" if state is not None else ""
