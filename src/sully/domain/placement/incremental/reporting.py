"""The status of a placement after a pass, and whether it changed.

The placement controller writes it, and a simulation (whatif.py) keeps it, because a placement whose
status changed gets another pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from sully.api.cluster.types import Placement, PlacementStatus
from sully.domain.placement.results.conditions import (
    REMOVALS_DELAYED,
    PlacementCondition,
    merge_conditions,
)
from sully.domain.placement.results.outcome import Outcome

_MOST_NAMED = 10
"""How many clusters a message lists."""


def status_after(placement: Placement, outcome: Outcome, now: datetime) -> PlacementStatus | None:
    """Return the status for an outcome; None if it is unchanged."""
    findings = [*outcome.conditions, *_held(placement, outcome)]
    status = replace(
        placement.status,
        number_of_selected_clusters=outcome.selected,
        decision_groups=outcome.groups,
        conditions=merge_conditions(placement.status.conditions, findings, now),
    )
    return status if status != placement.status else None


def _held(placement: Placement, outcome: Outcome) -> Sequence[PlacementCondition]:
    if outcome.held:
        names = ", ".join(outcome.held[:_MOST_NAMED])
        more = len(outcome.held) - _MOST_NAMED
        text = f"Waiting for the removal budget: {names}"
        if more > 0:
            text += f" and {more} more"
        return (PlacementCondition(REMOVALS_DELAYED, "True", "RemovalBudget", text),)
    if any(condition.type == REMOVALS_DELAYED for condition in placement.status.conditions):
        text = "No cluster waits for the removal budget"
        return (PlacementCondition(REMOVALS_DELAYED, "False", "NoneDelayed", text),)
    return ()
