"""The policy group: disruption budgets, and whether a pod may be evicted.

Owns: the kind PodDisruptionBudget, the body kind Eviction, and the eviction endpoint's decision.
Never: counts healthy pods (a controller does) or deletes anything.
Start at: budgets.py, then eviction.py and protection.py.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

POLICY = "io.k8s.api.policy.v1"


def load_tables(tables: "Tables") -> None:
    """Load the types of the group."""
    # Late imports, also below: callers of protection.py need none of the strategies.
    from sully.api.tables import load

    load(tables, __name__, POLICY, "policy.fields")


def resources() -> Iterable["ResourceType"]:
    """Return the resources of the group."""
    from sully.api.policy.budgets import BUDGETS

    return (BUDGETS,)
