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

AGE = Column("Age", age_cell, type="date", description="Time since the object was created.")


def printed(
    name: str, path: str, cell: Callable[[Obj, datetime], Any], *, holds: str = "string"
) -> Column:
    """Make a column as a CustomResourceDefinition has it; an absent value is no cell."""
    text = f"Custom resource definition column (in JSONPath format): {path}"
    return Column(name, cell, type=holds, description=text)


def condition_status(name: str, condition: str, part: str = "status") -> Column:
    """Make a column of one part of a condition."""
    path = f'.status.conditions[?(@.type=="{condition}")].{part}'
    return printed(name, path, plain(lambda obj: _condition(obj, condition).get(part)))


def _condition(obj: Obj, name: str) -> Obj:
    found = (obj.get("status") or {}).get("conditions") or []
    return next((one for one in found if one.get("type") == name), {})
