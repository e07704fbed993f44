"""sully.dev: kinds of our own, which remember what taints did, and which set them.

Owns: EvictionRecord (a pod that left), TaintRecord (a rule, also after it is gone) and
ClusterTaintPolicy (conditions of clusters that become taints).
Never: served by a server that imitates Kubernetes; decides who leaves.
Start at: types.py, then records.py.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

SUPERSET_KINDS = ("EvictionRecord", "TaintRecord", "ClusterTaintPolicy")


def load_tables(tables: "Tables") -> None:
    """Load the types of the group."""
    # Late imports, also below: whoever wants a type need not load all the rules about it.
    from sully.api.sully.records import SULLY
    from sully.api.tables import load

    load(tables, __name__, SULLY, "sully.fields", "policies.fields")


def resources() -> Iterable["ResourceType"]:
    """Return the resources of the group."""
    from sully.api.sully.policies import POLICIES
    from sully.api.sully.records import EVICTIONS, TAINTS

    return (EVICTIONS, TAINTS, POLICIES)
