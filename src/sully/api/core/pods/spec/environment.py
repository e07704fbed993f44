"""Environment variables of containers and where their values come from.

Volumes that show a pod to itself (volumes.py) refer to its fields in the same way.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sully.api.core.checks import Errors, dns_label, dns_subdomain, formatted, label_key
from sully.api.core.objects import key_problems
from sully.api.core.pods.spec.paths import no_backsteps
from sully.machinery.fields import Path
from sully.machinery.formats.names import dns_subdomain_problems

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
# Fields that Kubernetes knows, whether or not a variable or a file can have them.
_CONVERTED = (
    *_FIELDS,
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
)
_ONE_OF_A_MAP = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_AMOUNTS = tuple(
    f"{part}.{name}"
    for part in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_PAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_UNITS = ("1m", "1")
_BYTE_UNITS = ("1", *(f"1{unit}" for unit in ("k", *"MGTPE", *(f"{u}i" for u in "KMGTPE"))))
_BYTES = {
    ".memory": "memory",
    ".ephemeral-storage": "local ephemeral storage",
    ".hugepages-": "hugepages",
}
"""What is counted in bytes, and what error texts call it."""


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
    present = [name for name in _SOURCES if name in source]
    if "fieldRef" in source:
        yield from field_ref(source["fieldRef"], _FIELDS, at.child("fieldRef"))
    if "resourceFieldRef" in source:
        yield from amount_ref(source["resourceFieldRef"], at.child("resourceFieldRef"))
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from _key_ref(source[name], at.child(name))
    if "fileKeyRef" in source:
        yield from _file_ref(source["fileKeyRef"], at.child("fileKeyRef"))
    if not present:
        yield at.invalid("", _ONE_SOURCE)
    elif variable.get("value"):
        yield at.invalid("", "may not be specified when `value` is not empty")
    elif len(present) > 1:
        yield at.invalid("", "may not have more than one field specified at a time")


def _file_ref(reference: Obj, at: Path) -> Errors:
    """Check the reference to a key of a file in a volume."""
    checks: tuple[tuple[str, Callable[[str, Path], Errors]], ...] = (
        ("key", lambda value, here: formatted(value, name_problems, here)),
        ("volumeName", dns_label),
        ("path", no_backsteps),
    )
    for name, check in checks:
        if not reference.get(name):
            yield at.child(name).required()
        else:
            yield from check(reference[name], at.child(name))


def file_volumes(spec: Obj, at: Path) -> Errors:
    """Check that variables are read from files of volumes that pods can write."""
    known = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(part) or ()):
            for number, variable in enumerate(container.get("env") or ()):
                reference = variable.get("valueFrom", {}).get("fileKeyRef")
                here = at.child(part).index(position).child("env").index(number)
                if reference is not None:
                    yield from _file_volume(
                        reference.get("volumeName", ""),
                        known,
                        here.child("valueFrom", "fileKeyRef", "volumeName"),
                    )


def _file_volume(name: str, known: dict[str, Obj], at: Path) -> Errors:
    if name not in known:
        yield at.not_found(name)
    elif "emptyDir" not in known[name]:
        yield at.invalid(name, "referenced volume must be of type emptyDir")


def field_ref(reference: Obj, known: Sequence[str], at: Path) -> Errors:
    """Check the reference to a field of the pod."""
    path = reference.get("fieldPath", "")
    match = _ONE_OF_A_MAP.fullmatch(path)
    if not reference.get("apiVersion"):
        yield at.child("apiVersion").required()
    elif not path:
        yield at.child("fieldPath").required()
    elif reference["apiVersion"] != "v1":
        text = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        yield at.child("fieldPath").invalid(path, text)
    elif match:
        # Case does not matter in keys of annotations.
        key = match[2] if match[1] == "labels" else match[2].lower()
        yield from label_key(key, at)
    elif path not in known and path not in _CONVERTED:
        text = f"error converting fieldPath: field label not supported: {path}"
        yield at.child("fieldPath").invalid(path, text)
    elif path not in known:
        yield at.child("fieldPath").not_supported(path, known)


def amount_ref(reference: Obj, at: Path) -> Errors:
    """Check the reference to a resource of a container, and its unit."""
    name = reference.get("resource", "")
    if not name:
        yield at.child("resource").required()
    elif name not in _AMOUNTS and not name.startswith(_PAGES):
        yield at.child("resource").not_supported(name, _AMOUNTS)
    unit, at = reference.get("divisor", "0"), at.child("divisor")
    if unit == "0" or not name:
        return
    if name.endswith(".cpu") and unit not in _CPU_UNITS:
        text = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield at.invalid(name, text)
    kind = next((limit for part, limit in _BYTES.items() if part in name), "")
    if kind and unit not in _BYTE_UNITS:
        units = ", ".join(_BYTE_UNITS)
        text = f"only divisor's values {units} are supported with the {kind} resource"
        yield at.invalid(name, text)


def _key_ref(reference: Obj, at: Path) -> Errors:
    yield from dns_subdomain(reference.get("name", ""), at.child("name"))
    if not reference.get("key"):
        yield at.child("key").required()
    else:
        yield from formatted(reference["key"], key_problems, at.child("key"))


def sources(values: list[Obj], at: Path) -> Errors:
    """Check objects that are turned into variables as a whole."""
    for position, source in enumerate(values):
        here = at.index(position)
        yield from formatted(source.get("prefix", ""), name_problems, here.child("prefix"))
        present = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in present:
            place = here.child(name, "name")
            if not source[name].get("name"):
                yield place.required()
            else:
                yield from formatted(source[name]["name"], dns_subdomain_problems, place)
        if not present:
            # Kubernetes leaves the index out here.
            yield at.invalid("", "must specify one of: `configMapRef` or `secretRef`")
        elif len(present) > 1:
            yield at.invalid("", "may not have more than one field specified at a time")
