"""The apps group: workloads that keep pods running, and the revisions of their templates.

Owns: the kinds and the way from them to a Scale and back.
Never: creates pods; controllers do.
Start at: workloads.py, then deployments.py.
"""

from collections.abc import Iterable

from sully.api.apps.daemonsets import DAEMON_SETS
from sully.api.apps.deployments import DEPLOYMENTS
from sully.api.apps.replicasets import REPLICA_SETS
from sully.api.apps.revisions import CONTROLLER_REVISIONS
from sully.api.apps.scale import apply_scale, scale_of
from sully.api.apps.statefulsets import STATEFUL_SETS
from sully.api.apps.workloads import APPS
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType

__all__ = ["apply_scale", "load_tables", "resources", "scale_of"]


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, APPS, "apps.fields", "statefulsets.fields", "daemonsets.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (CONTROLLER_REVISIONS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)
