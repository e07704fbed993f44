"""The autoscaling group: only Scale, the shape of the `scale` subresource.

Owns: the table of Scale.
Never: a resource of its own to serve; api/apps turns its kinds into a Scale and back.
Start at: autoscaling.fields, then api/apps/scale.py.
"""

from collections.abc import Iterable

from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType

AUTOSCALING = "io.k8s.api.autoscaling.v1"


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, AUTOSCALING, "autoscaling.fields")


def resources() -> Iterable[ResourceType]:
    """Serve nothing: Scale only appears under other resources."""
    return ()
