"""What a budget protects, for the eviction subresource, the controllers and plans.

No strategy is imported here: plans need none.
"""

from sully.api.core.pods.phases import TERMINAL_PHASES

UNPROTECTED = TERMINAL_PHASES | {"Pending"}
"""Phases in which a pod may always be evicted."""
TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)


def allows_unready_eviction(policy: str | None, *, healthy: int, desired: int) -> bool:
    """Report whether a budget allows evicting unready pods: they do not count as healthy."""
    return policy == "AlwaysAllow" or healthy >= desired > 0
