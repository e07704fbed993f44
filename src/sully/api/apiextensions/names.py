"""Which names of definitions are accepted, and the conditions that report it.

Two definitions of one group cannot have the same name for different kinds: the first one keeps it.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sully.machinery.errors import joined
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition whose objects are being deleted."""
NAMES_ACCEPTED, ESTABLISHED, TERMINATING = "NamesAccepted", "Established", "Terminating"
_NOT_ACCEPTED = ("False", "NotAccepted", "not all names are accepted")
_INSTALLING = ("False", "Installing", "the initial names have been accepted")
_ACCEPTED = ("True", "InitialNamesAccepted", "the initial names have been accepted")


def condition(definition: Obj, type_: str) -> Obj:
    """Return a condition of a definition; empty if it has none of this type."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == type_), {})


def is_true(definition: Obj, type_: str) -> bool:
    """Report whether a definition has a condition."""
    return condition(definition, type_).get("status") == "True"


def with_condition(status: Obj, type_: str, state: Sequence[str], now: str) -> Obj:
    """Return a status with a condition; its time is that of the last change of its status."""
    value, reason, message = state
    conditions = list(status.get("conditions") or ())
    known: Obj = next((entry for entry in conditions if entry["type"] == type_), {})
    same = known.get("status") == value
    new = {
        "type": type_,
        "status": value,
        "lastTransitionTime": known["lastTransitionTime"] if same else now,
        "reason": reason,
        "message": message,
    }
    if known:
        conditions[conditions.index(known)] = new
    else:
        conditions.append(new)
    return {**status, "conditions": conditions}


def names_status(definition: Obj, others: Iterable[Obj], now: str) -> Obj:
    """Return the status of a definition beside others of its group."""
    accepted_names = [other["status"]["acceptedNames"] for other in others]
    requested, status = definition["spec"]["names"], definition["status"]
    accepted, conflict = _accepted(requested, status.get("acceptedNames") or {}, accepted_names)
    status = {**status, "acceptedNames": accepted}
    state = conflict or ("True", "NoConflicts", "no conflicts found")
    established = condition(definition, ESTABLISHED)
    status = with_condition(status, NAMES_ACCEPTED, state, now)
    if established.get("status") == "True":
        return status
    return with_condition(status, ESTABLISHED, _NOT_ACCEPTED if conflict else _INSTALLING, now)


def established_status(definition: Obj, now: str) -> Obj:
    """Return the status of a definition that is served from now on."""
    return with_condition(definition["status"], ESTABLISHED, _ACCEPTED, now)


def _accepted(
    requested: Obj, known: Obj, others: Collection[Obj]
) -> tuple[Obj, tuple[str, str, str] | None]:
    """Return the names that a definition gets, and the last conflict."""
    resources = {
        name
        for names in others
        for name in (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ()))
    }
    kinds = {name for names in others for name in (names.get("kind"), names.get("listKind"))}
    accepted, conflict = dict(known), None
    for field, used in (("plural", resources), ("singular", resources)):
        conflict = _take(field, requested, accepted, used) or conflict
    own = known.get("shortNames") or ()
    taken = [
        name for name in requested.get("shortNames") or () if name not in own and name in resources
    ]
    if taken:
        texts = [f"{quote(name)} is already in use" for name in taken]
        conflict = ("False", "ShortNamesConflict", joined(texts))
    else:
        _set(accepted, "shortNames", requested.get("shortNames"))
    for field in ("kind", "listKind"):
        conflict = _take(field, requested, accepted, kinds) or conflict
    _set(accepted, "categories", requested.get("categories"))
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    empty = {"plural": "", "kind": ""}
    return {name: accepted.get(name, "") for name in order if name in accepted | empty}, conflict


def _take(
    field: str, requested: Obj, accepted: Obj, used: Collection[Any]
) -> tuple[str, str, str] | None:
    name = requested.get(field, "")
    if name != accepted.get(field, "") and name in used:
        reason = f"{field[0].upper()}{field[1:]}Conflict"
        return "False", reason, f"{quote(name)} is already in use"
    _set(accepted, field, name)
    return None


def _set(names: Obj, field: str, value: Any) -> None:
    if value:
        names[field] = value
    else:
        names.pop(field, None)
