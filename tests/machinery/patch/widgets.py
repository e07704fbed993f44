"""A made-up kind with every way of merging there is, for tests of patches."""

from typing import Any

from sully.machinery.patch.ownership.fieldset import FieldSet
from sully.machinery.patch.ownership.managed import Write
from sully.machinery.schema import Tables
from sully.machinery.serialization.decode import decode

TABLE = """
Widget: A thing.
  apiVersion string: .
  kind string: .
  metadata Meta emit: .
  spec Spec emit: .
  status Status emit: .

Meta: Facts.
  annotations {}string: .
  creationTimestamp Time: .
  finalizers []string set merge: .
  generation int64: .
  labels {}string: .
  managedFields []object atomic: .
  name string: .
  namespace string: .
  ownerReferences []Owner map(uid) merge(uid): .
  resourceVersion string: .
  uid string: .

Owner atomic: Owner.
  name string required emit: .
  uid string required emit: .

Spec: Wanted.
  args []string atomic: .
  containers []Container map(name) merge(name): .
  limits {}Quantity: .
  mode Mode emit: .
  paused bool: .
  plain []Owner: .
  point Mode atomic: .
  ports []Port map(port,protocol) merge(port): .
  raw object: .
  replicas int32 ptr: .
  selector Selector: .
  strategy Strategy retainKeys: .
  swap Selector replace: .
  tags []string set merge: .
  weird []Owner merge: .

Container: Container.
  env []Env map(name) merge(name): .
  image string: .
  name string required emit: .

Env: Variable.
  name string required emit: .
  value string: .

Mode: Mode.
  speed int32: .
  style string: .

Port: Port.
  name string: .
  port int32 required emit: .
  protocol string default=TCP: .

Selector: Selector.
  driver string ptr: .
  matchLabels {}string: .

Strategy: Strategy.
  rolling Mode: .
  type string: .

Status: State.
  conditions []Condition map(type) merge(type): .
  phase string: .

Condition: Condition.
  status string required emit: .
  type string required emit: .
"""

_TABLES = Tables()
_TABLES.load("test", "test", TABLE)
WIDGET = _TABLES.get("test", "Widget")

NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T13:00:00Z"
V1 = "example.com/v1"
STATUS = FieldSet.of(("status",))
ALL_BUT_STATUS = FieldSet.of(("spec",), ("metadata",))


def widget(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """Build a decoded widget."""
    metadata.setdefault("name", "w")
    body = {"apiVersion": V1, "kind": "Widget", "metadata": metadata, "spec": spec or {}}
    return decode(body, WIDGET, [])


def expected(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """Build what a client applies: nothing is filled in."""
    body: dict[str, Any] = {"apiVersion": V1, "kind": "Widget", "metadata": {"name": "w"}}
    body["metadata"] |= metadata
    return body if spec is None else body | {"spec": spec}


def write(manager: str = "me", time: str = NOON, **changes: Any) -> Write:
    """Build the description of a write on the object itself."""
    return Write(manager, V1, WIDGET, time, **({"reset": STATUS} | changes))


def stored(obj: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an object as the server would store it after a write."""
    decoded = decode({**obj, "metadata": {**obj["metadata"], "uid": "u"}}, WIDGET, [])
    decoded["metadata"]["managedFields"] = entries
    return decoded
