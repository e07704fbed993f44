"""What a budget protects, for the eviction subresource, the controllers and plans.

Nothing is imported here: plans need none of the strategies.
"""

UNPROTECTED = frozenset(("Succeeded", "Failed", "Pending"))
"""Phases in which a pod may always be evicted."""
TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)


def allows_unready_eviction(policy: str | None, *, healthy: int, desired: int) -> bool:
    """Report whether a budget allows evicting unready pods: they do not count as healthy."""
    return policy == "AlwaysAllow" or healthy >= desired > 0
