"""Events: what happened to an object, for people to read.

One stored object has two views: `v1`, and `events.k8s.io/v1`, which renames the fields and is
stricter about what is new. The second view and its conversion are in api/events.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sully.api.core.checks import IMMUTABLE, dns_subdomain, label_key
from sully.api.core.columns import plain, since
from sully.api.core.namespaces import unsupported_label
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import (
    dns_subdomain_problems,
    finalizer_problems,
    path_segment_problems,
)
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

STORAGE = "events"
_WORD_MAX = 128
_NOTE_MAX = 1024
_WRONG_NAMESPACE = "does not match event.namespace"
_UNSET = "needs to be unset"
# Where the view of events.k8s.io does not let a written event be rewritten.
_FIXED = (
    ("involvedObject", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("firstTimestamp", "firstTimestamp"),
    ("lastTimestamp", "lastTimestamp"),
    ("count", "count"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
)
_REFERENCE_FIELDS = {
    "Kind": "kind",
    "Namespace": "namespace",
    "Name": "name",
    "UID": "uid",
    "APIVersion": "apiVersion",
    "ResourceVersion": "resourceVersion",
    "FieldPath": "fieldPath",
}
_SHOWN = {
    "involvedObject": _REFERENCE_FIELDS,
    "related": _REFERENCE_FIELDS,
    "source": {"Component": "component", "Host": "host"},
}
"""Which fields error texts quote under the names of Go, and how."""


class EventStrategy(Strategy, frozen=True):
    """Writes through the older view."""

    reporter = "reportingComponent"

    def validate_name(self, name: str) -> Sequence[str]:
        """Accept everything that can be part of a path."""
        return path_segment_problems(name)

    def validates_metadata(self) -> bool:
        """Leave the metadata for later, as Kubernetes does in this view."""
        return False

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Allow names without a domain, as Kubernetes does in this view."""
        return ()

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check what both views demand."""
        return self._common(obj)

    def _common(self, obj: Obj) -> Iterator[FieldError]:
        namespace = obj["metadata"].get("namespace", "")
        if obj.get("eventTime"):
            yield from self._timed(obj, namespace)
        else:
            yield from _plain_namespace(obj, namespace)
        yield from dns_subdomain(namespace, Path("namespace"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state like a new event."""
        return self.validate_create(obj, ctx)

    def _timed(self, obj: Obj, namespace: str) -> Iterator[FieldError]:
        """Check an event of the newer kind, known by its exact time."""
        if not obj["involvedObject"].get("namespace") and namespace not in (
            "default",
            "kube-system",
        ):
            yield Path("involvedObject.namespace").invalid("", _WRONG_NAMESPACE)
        reporter, at = obj.get("reportingComponent", ""), Path(self.reporter)
        if not reporter:
            yield at.required()
        yield from label_key(reporter, at)
        for name in ("reportingInstance", "action", "reason"):
            yield from _word(obj.get(name, ""), Path(name))
        if len(obj.get("message", "").encode()) > _NOTE_MAX:
            yield Path("message").invalid("", f"can have at most {_NOTE_MAX} characters")


class StrictEventStrategy(EventStrategy, frozen=True):
    """Writes through events.k8s.io: only newer events, of which only the series changes."""

    reporter = "reportingController"

    def validate_name(self, name: str) -> Sequence[str]:
        """Require a DNS subdomain, as of most kinds."""
        return dns_subdomain_problems(name)

    def validates_metadata(self) -> bool:
        """List errors of the metadata with the others."""
        return True

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Require a domain, as of most kinds."""
        return finalizer_problems(name)

    def validate_before_metadata(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check what both views demand."""
        return self._common(obj)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that the event is of the newer kind and sets no field of the older one."""
        yield from _series(obj)
        if not obj.get("eventTime"):
            yield Path("eventTime").required()
        if obj.get("type", "") not in ("Normal", "Warning"):
            yield Path("type").invalid("", f"has invalid value: {obj.get('type', '')}")
        for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if obj.get(name):
                yield Path(name).invalid("", _UNSET)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that nothing but the series changes."""
        yield from self._common(obj)
        if obj.get("series") != old.get("series"):
            yield from _series(obj)
        for field, name in _FIXED:
            if (obj.get(field) or None) != (old.get(field) or None):
                yield Path(name).invalid(_quoted(field, obj.get(field)), IMMUTABLE)


def _quoted(field: str, value: Any) -> Any:
    if field not in _SHOWN or (not value and field == "related"):
        return value
    return _as_go(value or {}, _SHOWN[field])


def _as_go(value: Obj, fields: dict[str, str]) -> Obj:
    """Return an object under the names of Go's fields, which is how error texts quote it."""
    return {shown: value.get(name, "") for shown, name in fields.items()}


def _plain_namespace(obj: Obj, namespace: str) -> Iterator[FieldError]:
    named = obj["involvedObject"].get("namespace", "")
    fits = namespace == named if named else namespace in ("", "default")
    if not fits:
        yield Path("involvedObject.namespace").invalid(named, _WRONG_NAMESPACE)


def _word(value: str, at: Path) -> Iterator[FieldError]:
    if not value:
        yield at.required()
    if len(value.encode()) > _WORD_MAX:
        yield at.invalid("", f"can have at most {_WORD_MAX} characters")


def _series(obj: Obj) -> Iterator[FieldError]:
    series = obj.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield Path("series.count").invalid("", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield Path("series.lastObservedTime").required()


def _first_seen(obj: Obj, now: datetime) -> str:
    return since(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _last_seen(obj: Obj, now: datetime) -> str:
    if obj.get("series"):
        return since(obj["series"].get("lastObservedTime"), now)
    last = obj.get("lastTimestamp")
    return since(last, now) if last else _first_seen(obj, now)


def _object(obj: Obj) -> str:
    about = obj["involvedObject"]
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else str(kind)


def _source(obj: Obj) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    host = source.get("host") or obj.get("reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


def _count(obj: Obj) -> int:
    if obj.get("series"):
        return int(obj["series"].get("count", 0))
    return int(obj.get("count") or 1)


def text(*path: str) -> Callable[[Obj], str]:
    """Return a function that reads a text of an event."""

    def read(obj: Obj) -> str:
        value: Any = obj
        for name in path:
            value = (value or {}).get(name)
        return str(value or "")

    return read


COLUMNS = (
    Column("Last Seen", _last_seen, description="Time since it last happened."),
    Column("Type", plain(text("type")), description="Normal or Warning."),
    Column("Reason", plain(text("reason")), description="Why, as one CamelCase word."),
    Column("Object", plain(_object), description="What it happened to."),
    Column(
        "Subobject",
        plain(text("involvedObject", "fieldPath")),
        priority=1,
        description="Part of the object.",
    ),
    Column("Source", plain(_source), priority=1, description="The component that reported it."),
    Column(
        "Message", plain(lambda obj: obj.get("message", "").strip()), description="What happened."
    ),
    Column("First Seen", _first_seen, priority=1, description="Time since it first happened."),
    Column("Count", plain(_count), priority=1, description="How often it happened."),
    Column(
        "Name",
        plain(text("metadata", "name")),
        format="name",
        priority=1,
        description="Name of the event.",
    ),
)

_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def selectable(prefix: str, reporter: str) -> dict[str, Callable[[Obj], str]]:
    """Return what events can be selected by, under the names of one view."""
    about = {f"{prefix}.{name}": text("involvedObject", name) for name in _ABOUT}
    names = {"reason": text("reason"), "type": text("type")}
    return about | names | {reporter: text("reportingComponent")}


EVENTS = ResourceType(
    group="",
    kind="Event",
    plural="events",
    singular="event",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1"),),
    strategy=EventStrategy(),
    short_names=("ev",),
    columns=COLUMNS,
    selectable=selectable("involvedObject", "reportingComponent")
    | {"source": lambda obj: text("source", "component")(obj) or text("reportingComponent")(obj)},
    unknown_label=unsupported_label,
    create_on_update=True,
)
