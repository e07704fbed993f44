"""The parameters of requests: one table for both versions of OpenAPI."""

import msgspec


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a path or query."""

    name: str
    type: str
    about: str
    place: str = "query"


_ALL = (
    Parameter("name", "string", "Name of the object.", "path"),
    Parameter("namespace", "string", "Namespace of the objects.", "path"),
    Parameter("pretty", "string", "`true` spreads the answer over lines with indentation."),
    Parameter(
        "allowWatchBookmarks",
        "boolean",
        "Lets a watch send BOOKMARK events, which carry nothing but a resourceVersion to go on"
        " from.",
    ),
    Parameter(
        "continue",
        "string",
        "Token from the metadata of the previous part of a list: requests the next part.",
    ),
    Parameter(
        "fieldSelector",
        "string",
        "Restricts to objects whose fields have, or have not, certain values, such as"
        " `metadata.name=x,spec.nodeName!=y`.",
    ),
    Parameter(
        "labelSelector",
        "string",
        "Restricts to objects with certain labels, such as `tier in (gold,silver),!old`.",
    ),
    Parameter("limit", "integer", "Most objects to return in one part of a list."),
    Parameter(
        "resourceVersion",
        "string",
        "State the answer is based on; what it means depends on `resourceVersionMatch` and on"
        " whether the request is a list or a watch.",
    ),
    Parameter(
        "resourceVersionMatch",
        "string",
        "`Exact` wants the state of `resourceVersion` itself, `NotOlderThan` that or a later one.",
    ),
    Parameter(
        "sendInitialEvents",
        "boolean",
        "Lets a watch begin with an ADDED event for every object and a bookmark that marks the"
        " end of them.",
    ),
    Parameter("timeoutSeconds", "integer", "Ends the list or watch after this time."),
    Parameter("watch", "boolean", "Streams changes instead of returning a list."),
    Parameter("dryRun", "string", "`All` checks everything and stores nothing."),
    Parameter(
        "fieldManager",
        "string",
        "Name under which changed fields are recorded; required to apply.",
    ),
    Parameter(
        "fieldValidation",
        "string",
        "What happens to unknown and repeated fields: `Ignore` drops them silently, `Warn` drops"
        " them with a warning and is the default, `Strict` rejects the request.",
    ),
    Parameter("force", "boolean", "Takes over fields that another manager owns; only for apply."),
    Parameter(
        "gracePeriodSeconds",
        "integer",
        "Seconds the object may take to shut down; 0 deletes it immediately.",
    ),
    Parameter(
        "orphanDependents",
        "boolean",
        "Old form of `propagationPolicy`: true keeps the objects owned by the deleted one.",
    ),
    Parameter(
        "propagationPolicy",
        "string",
        "What happens to owned objects: `Orphan` leaves them, `Background` collects them"
        " afterwards, `Foreground` before the owner is deleted.",
    ),
)
PARAMETERS = {parameter.name: parameter for parameter in _ALL}

LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
WRITE = ("dryRun", "fieldManager", "fieldValidation")
PATCH = (*WRITE, "force")
DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
DELETE_COLLECTION = tuple(sorted({*DELETE, *LIST} - {"allowWatchBookmarks", "watch"}))
