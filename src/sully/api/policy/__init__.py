"""The policy group: disruption budgets, and the question whether a pod may be evicted.

Owns: the kind PodDisruptionBudget, the body kind Eviction, and the eviction endpoint's decision.
Never: counts healthy pods (a controller does) or deletes anything.
Start at: budgets.py, then eviction.py.
"""

from collections.abc import Iterable

from sully.api.policy.budgets import BUDGETS, POLICY
from sully.api.policy.eviction import Eviction, check_eviction, decide_eviction
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType

__all__ = ["Eviction", "check_eviction", "decide_eviction", "load_tables", "resources"]


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, POLICY, "policy.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (BUDGETS,)
