"""What the printed tables of these groups share: the name, the age, containers and selectors.

The columns of one kind are defined with that kind.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sully.machinery.formats.timestamps import age, parse_time
from sully.machinery.selectors import labels
from sully.machinery.strategy import Column

Obj = dict[str, Any]

UNKNOWN = "<unknown>"
NONE = "<none>"
UNSET = "<unset>"


def since(text: str | None, now: datetime) -> str:
    """Return how long ago a timestamp was."""
    return age(parse_time(text), now) if text else UNKNOWN


def name_cell(obj: Obj, _now: datetime) -> str:
    """Return the object's name."""
    return str(obj["metadata"].get("name", ""))


def age_cell(obj: Obj, now: datetime) -> str:
    """Return the object's age."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def plain(read: Callable[[Obj], Any]) -> Callable[[Obj, datetime], Any]:
    """Return a cell from a function that needs no clock."""
    return lambda obj, _now: read(obj)


def format_labels(values: Mapping[str, str] | None) -> str:
    """Return labels as tables show them."""
    return ",".join(f"{key}={value}" for key, value in sorted((values or {}).items())) or NONE


NAME = Column("Name", name_cell, format="name", description="Name of the object.")
AGE = Column("Age", age_cell, description="Time since the object was created.")


def _containers(obj: Obj) -> list[Obj]:
    template = obj["spec"].get("template") or {}
    return (template.get("spec") or {}).get("containers") or []


def _container_names(obj: Obj) -> str:
    return ",".join(container["name"] for container in _containers(obj))


def _images(obj: Obj) -> str:
    return ",".join(container.get("image", "") for container in _containers(obj))


def _selector(obj: Obj) -> str:
    try:
        return str(labels.from_object(obj["spec"].get("selector"))) or NONE
    except labels.SelectorError:
        return "<invalid>"


# What controllers of pods show in the wide form.
POD_TEMPLATE = (
    Column(
        "Containers", plain(_container_names), priority=1, description="Names of the containers."
    ),
    Column("Images", plain(_images), priority=1, description="Images of the containers."),
    Column("Selector", plain(_selector), priority=1, description="Which pods are counted."),
)
