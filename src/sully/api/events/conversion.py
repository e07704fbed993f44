"""From the names of events.k8s.io/v1 to those of the stored core event, and back.

Both ways yield normal form: what one table always writes and the other leaves out when empty
(machinery.decode) is added or taken away here.
"""

from typing import Any

Obj = dict[str, Any]

# Name here → name in the stored form; everything else is called the same.
_NAMES = {
    "reportingController": "reportingComponent",
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_STORED = {stored: name for name, stored in _NAMES.items()}
# Always written in the stored form, and left out here when empty.
_REPORTERS = ("reportingController", "reportingInstance")


def to_stored(event: Obj) -> Obj:
    """Return the event as the core group stores it."""
    stored = {_NAMES.get(name, name): value for name, value in event.items()}
    for name in _REPORTERS:
        stored.setdefault(_NAMES.get(name, name), "")
    series = stored.get("series")
    if series is not None and not series.get("count"):
        stored["series"] = {name: value for name, value in series.items() if name != "count"}
    return stored


def from_stored(event: Obj) -> Obj:
    """Return a stored event under the names of this group."""
    view = {_STORED.get(name, name): value for name, value in event.items()}
    for name in _REPORTERS:
        if not view.get(name):
            view.pop(name, None)
    series = view.get("series")
    if series is not None:
        view["series"] = {"count": 0, **series}
    return view
