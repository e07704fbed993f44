"""What a budget protects at all, said once for the eviction endpoint, the controllers and plans.

Nothing is imported here: plans need these words and none of the rules on writes beside them.
"""

UNPROTECTED = frozenset(("Succeeded", "Failed", "Pending"))
"""Phases in which a pod may always go."""
TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)


def lets_unready_go(policy: str | None, *, healthy: int, desired: int) -> bool:
    """Report whether a budget lets unready pods go uncounted: they are not what keeps it up."""
    return policy == "AlwaysAllow" or healthy >= desired > 0
