"""The scheduling group: PriorityClasses, names for the priorities of pods.

Owns: the kind PriorityClass, and the classes of the system.
Never: sets the priority of a pod; that is the admission of pods.
Start at: classes.py.
"""

from collections.abc import Iterable

from sully.api.scheduling.classes import PRIORITY_CLASSES, SCHEDULING
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, SCHEDULING, "scheduling.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (PRIORITY_CLASSES,)
