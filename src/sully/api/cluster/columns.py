"""What the resources of the group share: verbs and printed columns of custom resources."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sully.api.core.columns import age_cell, plain
from sully.machinery.strategy import Column

Obj = dict[str, Any]

# In the order in which Kubernetes lists them for custom resources.
CLUSTER_VERBS = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)

JSON_PATH = "Custom resource definition column (in JSONPath format): "
AGE = Column("Age", age_cell, type="date", description="Time since the object was created.")


def printed(
    name: str, path: str, cell: Callable[[Obj, datetime], Any], *, holds: str = "string"
) -> Column:
    """Return a column as a CustomResourceDefinition has it; an absent value is not a cell."""
    return Column(name, cell, type=holds, description=f"{JSON_PATH}{path}")


def condition_status(name: str, type_: str, part: str = "status") -> Column:
    """Return a column of one part of a condition."""
    path = f'.status.conditions[?(@.type=="{type_}")].{part}'
    return printed(name, path, plain(lambda obj: condition(obj, type_).get(part)))


def condition(obj: Obj, type_: str) -> Obj:
    """Return a condition of an object; empty if it has none of this type."""
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == type_), {})
