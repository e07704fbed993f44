"""Environment variables of containers and where their values come from."""

from typing import Any

from sully.api.core.checks import Errors, formatted
from sully.api.core.objects import key_problems
from sully.machinery.fields import Path
from sully.machinery.names import dns_subdomain_problems

Obj = dict[str, Any]

_NAME_TEXT = (
    "a valid environment variable name must consist only of printable ASCII characters other than"
    " '='"
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or"
    " `fileKeyRef`"
)
_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)


def name_problems(name: str) -> list[str]:
    """Check the name of a variable."""
    fine = all(" " <= char <= "~" and char != "=" for char in name)
    return [] if fine else [_NAME_TEXT]


def variables(values: list[Obj], at: Path) -> Errors:
    """Check the variables of one container."""
    for position, variable in enumerate(values):
        here = at.index(position)
        name = variable.get("name", "")
        if not name:
            yield here.child("name").required()
        yield from formatted(name, name_problems, here.child("name"))
        if "valueFrom" in variable:
            yield from _value_from(variable, here.child("valueFrom"))


def _value_from(variable: Obj, at: Path) -> Errors:
    source = variable["valueFrom"]
    given = [name for name in _SOURCES if name in source]
    if "fieldRef" in source:
        yield from _field_ref(source["fieldRef"], at.child("fieldRef"))
    if "resourceFieldRef" in source and not source["resourceFieldRef"].get("resource"):
        yield at.child("resourceFieldRef", "resource").required()
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from _key_ref(source[name], at.child(name))
    if not given:
        yield at.invalid("", _ONE_SOURCE)
    elif variable.get("value"):
        yield at.invalid("", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield at.invalid("", "may not have more than one field specified at a time")


def _field_ref(reference: Obj, at: Path) -> Errors:
    path = reference.get("fieldPath", "")
    if not reference.get("apiVersion"):
        yield at.child("apiVersion").required()
    elif not path:
        yield at.child("fieldPath").required()
    elif path not in _FIELDS and not path.startswith(
        ("metadata.labels['", "metadata.annotations['")
    ):
        yield at.child("fieldPath").not_supported(path, _FIELDS)


def _key_ref(reference: Obj, at: Path) -> Errors:
    if not reference.get("name"):
        yield at.child("name").required()
    if not reference.get("key"):
        yield at.child("key").required()
    else:
        yield from formatted(reference["key"], key_problems, at.child("key"))


def sources(values: list[Obj], at: Path) -> Errors:
    """Check objects that are turned into variables as a whole."""
    for position, source in enumerate(values):
        here = at.index(position)
        yield from formatted(source.get("prefix", ""), name_problems, here.child("prefix"))
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in given:
            place = here.child(name, "name")
            if not source[name].get("name"):
                yield place.required()
            else:
                yield from formatted(source[name]["name"], dns_subdomain_problems, place)
        if not given:
            yield here.invalid("", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield here.invalid("", "may not have more than one field specified at a time")
