"""sully.dev: kinds of our own: records of taints and evictions, policies, reports of health.

Owns: EvictionRecord (an evicted pod), TaintRecord (a rule, also after its deletion),
ClusterTaintPolicy (conditions of clusters that become taints), DeviceTaintPolicy (faults of devices
that become taint rules), DeviceMaintenance (planned work on devices) and DeviceHealth (what a
reporter knows about the devices of a node).
Never: served in the mode that is exactly like Kubernetes; decides who is evicted.
Start at: types.py, then records.py.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

SULLY = "dev.sully.api.v1alpha1"
SUPERSET_KINDS = (
    "EvictionRecord",
    "TaintRecord",
    "ClusterTaintPolicy",
    "DeviceTaintPolicy",
    "DeviceMaintenance",
    "DeviceHealth",
)


def load_tables(tables: "Tables") -> None:
    """Load the types of the group."""
    # Late imports, also below: importing a type need not load all the rules about it.
    from sully.api.tables import load

    load(
        tables,
        __name__,
        SULLY,
        "sully.fields",
        "policies.fields",
        "proofs.fields",
        "device_policies.fields",
        "maintenances.fields",
        "health.fields",
    )


def resources() -> Iterable["ResourceType"]:
    """Return the resources of the group."""
    from sully.api.sully.health import HEALTH
    from sully.api.sully.maintenances import MAINTENANCES
    from sully.api.sully.policies.cluster import POLICIES
    from sully.api.sully.policies.device import DEVICE_POLICIES
    from sully.api.sully.records import EVICTIONS, TAINTS

    return (EVICTIONS, TAINTS, POLICIES, DEVICE_POLICIES, MAINTENANCES, HEALTH)
