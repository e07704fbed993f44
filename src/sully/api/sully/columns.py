"""What `kubectl get` prints of the kinds of this group, by path.

On other servers the kinds are custom resources, of which a column shows one value at a path. The
tables of our own server are the same, so that guides and scripts hold on both.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sully.api.core.columns import AGE, NAME
from sully.machinery.formats.timestamps import age, parse_time
from sully.machinery.strategy import Column

Obj = dict[str, Any]
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")


class PathColumn(NamedTuple):
    """A column with the value at a path."""

    name: str
    type: str
    """`string`, `integer`, or `date`, which is printed as an age."""
    path: str
    description: str = ""


COLUMNS: Mapping[str, tuple[PathColumn, ...]] = {
    "EvictionRecord": (
        PathColumn("Pod", "string", ".spec.pod.name", "The evicted pod."),
        PathColumn("Node", "string", ".spec.pod.node", "Where the pod ran."),
        PathColumn("Taint", "string", ".spec.causes[0].key", "Key of the first taint."),
        PathColumn("Effect", "string", ".spec.causes[0].effect", "Effect of that taint."),
        PathColumn("Cause", "string", ".spec.causes[0].name", "The object with that taint."),
        PathColumn("Evicted", "date", ".spec.evictedTime", "How long ago the pod was evicted."),
    ),
    "TaintRecord": (
        PathColumn("Rule", "string", ".spec.rule.name", "The rule."),
        PathColumn("Taint", "string", ".status.taint.key", "Key of the taint, as last seen."),
        PathColumn("Effect", "string", ".status.taint.effect", "Its effect, as last seen."),
        PathColumn("By", "string", ".spec.createdBy", "Who created the rule."),
        PathColumn("Evicted", "integer", ".status.evicted", "How many pods it evicted."),
        PathColumn("Deleted", "date", ".status.deletedTime", "How long ago it was deleted."),
    ),
    "ClusterTaintPolicy": (
        PathColumn(
            "Condition", "string", ".spec.rules[0].condition.type", "Condition of the first rule."
        ),
        PathColumn(
            "Status", "string", ".spec.rules[0].condition.status", "Its status that sets the taint."
        ),
        PathColumn("Taint", "string", ".spec.rules[0].taint.key", "Key of the taint that it sets."),
        PathColumn("Effect", "string", ".spec.rules[0].taint.effect", "Effect of that taint."),
    ),
    "DeviceTaintPolicy": (
        PathColumn("Mode", "string", ".spec.mode", "What the policy may do."),
        PathColumn("Taint", "string", ".spec.taint.key", "Key of the taint that it sets."),
        PathColumn("Selected", "integer", ".status.selected", "How many devices it is for."),
        PathColumn("Faulty", "integer", ".status.faulty", "How many of them have a fault."),
        PathColumn(
            "Unavailable", "integer", ".status.unavailable", "How many it makes unavailable."
        ),
    ),
    "DeviceMaintenance": (
        PathColumn("Phase", "string", ".status.phase", "How far it is."),
        PathColumn("Start", "string", ".spec.start", "When the work begins."),
        PathColumn("Total", "integer", ".status.total", "How many devices or nodes there are."),
        PathColumn("Done", "integer", ".status.done", "How many of them are done."),
    ),
    "DeviceHealth": (
        PathColumn("Node", "string", ".spec.nodeName", "Node of the devices."),
        PathColumn("Reporter", "string", ".spec.reporter", "Program that writes the report."),
        PathColumn("Status", "string", ".spec.overallStatus", "Worst status of the devices."),
        PathColumn("Renewed", "date", ".spec.renewTime", "How long ago it was confirmed."),
    ),
}
"""By kind; between the name and the age."""


def table(kind: str) -> tuple[Column, ...]:
    """Return the columns of a kind, as our own server prints them."""
    return (NAME, *map(_column, COLUMNS[kind]), AGE)


def _column(column: PathColumn) -> Column:
    def cell(obj: Obj, now: datetime) -> Any:
        value = value_at(obj, column.path)
        if value is None or column.type != "date":
            return value
        return age(parse_time(value), now)

    # An age is printed as text.
    type_ = "string" if column.type == "date" else column.type
    return Column(column.name, cell, type=type_, description=column.description)


def value_at(obj: Any, path: str) -> Any:
    """Return the value at a path such as `.spec.causes[0].key`; None if there is none."""
    for name, index in _PART.findall(path):
        if name:
            obj = obj.get(name) if isinstance(obj, dict) else None
        else:
            obj = obj[int(index)] if isinstance(obj, list) and int(index) < len(obj) else None
    return obj
