"""What policies record about a cluster, in an annotation.

Only policies that need it write it: those with flaps, a limit, or one delay for several statuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from sully.machinery.serialization.notes import have_zones, read_note

STATES = "sully.dev/policy-states"
"""The annotation of a cluster with what policies record about it."""

StateKey = tuple[str, str, str]
"""Policy, condition and taint: what makes two states those of the same rule."""


class RuleState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one rule of a policy recorded for a cluster."""

    policy: str
    condition: str
    """The condition with its status, written `type=status`."""
    taint: str
    since: datetime | None = None
    """When the fault began, if it may have had several statuses since."""
    fault_times: tuple[datetime, ...] = ()
    """When faults began that count as flaps."""
    flapping: bool = False
    """Whether the taint stays until a user declares the cluster healthy."""
    held_back: str = ""
    """Which limit the taint waits for."""

    def key(self) -> StateKey:
        """Return which rule the state is of."""
        return self.policy, self.condition, self.taint

    def is_empty(self) -> bool:
        """Report whether there is nothing to record."""
        return not (self.since or self.fault_times or self.flapping or self.held_back)


def write_states(states: Iterable[RuleState]) -> str:
    """Write states as JSON, in a fixed order; empty if there is none."""
    ordered = sorted(states, key=RuleState.key)
    return msgspec.json.encode(ordered).decode() if ordered else ""


def read_states(text: str) -> tuple[RuleState, ...]:
    """Read states; a text that cannot be read is ignored."""
    states = read_note(text, tuple[RuleState, ...]) or ()
    readable = (state for state in states if have_zones((state.since, *state.fault_times)))
    return tuple(sorted(readable, key=RuleState.key))
