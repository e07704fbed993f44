"""A DeviceTaintPolicy as the state machine reads it: durations, numbers, and no gaps.

On other servers a policy may lack defaults or have values that our own server refuses.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from sully.api.sully.durations import duration
from sully.api.sully.types import (
    ClusterTaintPolicyFlaps,
    DeviceTaintPolicy,
    DeviceTaintPolicyFlaps,
    DeviceTaintPolicyLimit,
    DeviceTaintPolicyStep,
)
from sully.domain.proofs.requests import ProofSettings
from sully.domain.proofs.requests import settings_of as proof_settings

DRY_RUN: Final = "DryRun"
REQUIRE_APPROVAL: Final = "RequireApproval"
ENFORCE: Final = "Enforce"
MINOR, MAJOR, CRITICAL = range(3)
SEVERITIES: Final = {"Minor": MINOR, "Major": MAJOR, "Critical": CRITICAL}


class Step(msgspec.Struct, frozen=True):
    """An effect, and when it begins."""

    effect: str
    after: timedelta = timedelta(0)
    min_severity: int = MINOR


class Flaps(msgspec.Struct, frozen=True):
    """How many faults within which time make a device flapping."""

    count: int
    within: timedelta


class Limit(msgspec.Struct, frozen=True):
    """How many of the devices that are counted together may be unavailable."""

    scope: str
    max_unavailable: int | str
    name: str = ""
    """The class or the attribute, for scopes that have one."""


class StormLimit(msgspec.Struct, frozen=True):
    """How many devices with new faults within which time are a storm."""

    devices: int | str
    within: timedelta


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy specifies, apart from which devices and faults it is about."""

    steps: tuple[Step, ...]
    mode: str = ENFORCE
    hold_for: timedelta = timedelta(0)
    clear_after: timedelta = timedelta(0)
    flaps: Flaps | None = None
    needs_proof: bool = False
    proof_job: ProofSettings | None = None
    """The Jobs that prove devices healthy; None if only people do."""
    limits: tuple[Limit, ...] = ()
    storm: StormLimit | None = None


def settings_of(policy: DeviceTaintPolicy) -> PolicySettings:
    """Return the settings of a policy."""
    spec = policy.spec
    storm, proof = spec.storm, spec.proof
    return PolicySettings(
        # An unknown mode may come from a newer version: reporting is the safe one.
        mode=spec.mode if spec.mode in (REQUIRE_APPROVAL, ENFORCE) else DRY_RUN,
        steps=tuple(map(_step, spec.steps)),
        hold_for=duration(spec.hold_for),
        clear_after=duration(spec.clear_after),
        flaps=flap_settings(spec.flaps),
        needs_proof=proof is not None and proof.type != "None",
        proof_job=proof_settings(proof),
        limits=tuple(map(_limit, spec.limits)),
        storm=StormLimit(storm.devices, duration(storm.within)) if storm is not None else None,
    )


def flap_settings(flaps: DeviceTaintPolicyFlaps | ClusterTaintPolicyFlaps | None) -> Flaps | None:
    """Return when something is flapping; None if nothing ever is."""
    return Flaps(max(2, flaps.count), duration(flaps.within)) if flaps is not None else None


def severity_of(name: str) -> int:
    """Return the severity of a source; one without is Major."""
    return SEVERITIES.get(name, MAJOR)


def _step(step: DeviceTaintPolicyStep) -> Step:
    # A step for an unknown severity waits for the highest.
    least = SEVERITIES.get(step.min_severity or "Minor", CRITICAL)
    return Step(step.effect, duration(step.after), least)


def _limit(limit: DeviceTaintPolicyLimit) -> Limit:
    return Limit(limit.scope, limit.max_unavailable, limit.device_class_name or limit.attribute)
