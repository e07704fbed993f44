"""The events group: the newer view of the events that the core group stores.

Owns: the names of `events.k8s.io/v1` and the way from them to the stored form and back.
Never: an object of its own; what is written here can be read as a core event and the other way.
Start at: core/events.py for the rules, then conversion.py.
"""

from collections.abc import Iterable

from sully.api.core.events import COLUMNS, STORAGE, StrictEventStrategy, selectable
from sully.api.core.namespaces import unsupported_label
from sully.api.events.conversion import from_stored, to_stored
from sully.api.tables import load
from sully.machinery.schema import Tables
from sully.machinery.strategy import ResourceType, Version

EVENTS_V1 = "io.k8s.api.events.v1"

EVENTS = ResourceType(
    group="events.k8s.io",
    kind="Event",
    plural="events",
    singular="event",
    namespaced=True,
    versions=(Version("v1", EVENTS_V1, to_stored=to_stored, from_stored=from_stored),),
    strategy=StrictEventStrategy(),
    short_names=("ev",),
    columns=COLUMNS,
    selectable=selectable("regarding", "reportingController"),
    unknown_label=unsupported_label,
    storage=STORAGE,
    create_on_update=True,
)


def load_tables(tables: Tables) -> None:
    """Load the types of the group."""
    load(tables, __name__, EVENTS_V1, "events.fields")


def resources() -> Iterable[ResourceType]:
    """Return the resources of the group."""
    return (EVENTS,)
