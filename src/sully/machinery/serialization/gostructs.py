"""Objects as Go writes its internal types in JSON, which some error texts of Kubernetes quote.

Internal types have no names for JSON: every field stands there under its name in Go, in the order
of the struct, null for what is not set. Field tables (schema.py) define which fields there are and
which are pointers, and in which order Go's struct has them.
"""

import difflib
import json
import re
from typing import Any, Final

from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization.codec import has_more_values

MAX_VALUES: Final = 1500
"""Of an object that is compared: many times those of typical pods."""

# What Go writes in capitals at the start of a name.
_INITIALS: Final = re.compile(
    r"api|aws|cel|csi|dns|fc|fs|gce|gmsa|grpc|http|ip|iqn|iscsi|nfs|os|pd|rbd|se|ssl|tcp|tty|wwid"
)
_RENAMED: Final = {
    ("PodSpec", "serviceAccount"): "DeprecatedServiceAccount",
    ("PhotonPersistentDiskVolumeSource", "pdID"): "PdID",
    ("RBDVolumeSource", "monitors"): "CephMonitors",
    ("RBDVolumeSource", "image"): "RBDImage",
    ("RBDVolumeSource", "pool"): "RBDPool",
    ("RBDVolumeSource", "user"): "RadosUser",
    ("GlusterfsVolumeSource", "endpoints"): "EndpointsName",
    ("AzureDiskVolumeSource", "diskURI"): "DataDiskURI",
    ("ISCSIVolumeSource", "chapAuthDiscovery"): "DiscoveryCHAPAuth",
    ("ISCSIVolumeSource", "chapAuthSession"): "SessionCHAPAuth",
    ("Volume", "cephfs"): "CephFS",
    ("Volume", "storageos"): "StorageOS",
}
_ZEROS: Final = {"bool": False, "int32": 0, "int64": 0, "number": 0}
_OWN_JSON: Final = ("LabelSelector",)
"""Types of the machinery, which have names for JSON inside too."""


def internal(value: Any, kind: Type) -> Any:
    """Return a value with every field of its type, under the names of Go."""
    if value is None:
        return None
    if isinstance(kind, ListOf):
        return [internal(item, kind.item) for item in value]
    if isinstance(kind, MapOf):
        return {key: internal(value[key], kind.value) for key in sorted(value)}
    if not isinstance(kind, ObjectType) or kind.name in _OWN_JSON:
        return value
    return {
        _go_name(kind, name): _field(value.get(name), kind.fields[name]) for name in kind.go_order
    }


def diff(before: Any, after: Any, kind: ObjectType) -> str:
    """Return how two objects of a type differ, as a unified diff of their lines.

    Objects that are too large for that are only reported as too large: comparing takes longer than
    anybody else should wait for.
    """
    if has_more_values(before, MAX_VALUES) or has_more_values(after, MAX_VALUES):
        return f"(too large to compare: more than {MAX_VALUES} fields and list items)\n"
    old, new = (_lines(internal(value, kind)) for value in (before, after))
    # Without names of files there is no head.
    return "".join(list(difflib.unified_diff(old, new))[2:])


def _lines(value: Any) -> list[str]:
    # Go escapes the special characters of HTML.
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return [f"{line}\n" for line in text.split("\n")]


def _field(value: Any, field: Field) -> Any:
    if value is None and isinstance(field.type, ObjectType) and field.emit:
        value = {}
    if value is None and isinstance(field.type, Scalar) and not field.ptr:
        return _ZEROS.get(field.type.name, "" if field.type.name == "string" else None)
    return internal(value, field.type)


def _go_name(kind: ObjectType, name: str) -> str:
    if renamed := _RENAMED.get((kind.name, name)):
        return renamed
    initials = _INITIALS.match(name)
    # They end before a capital, with the name, or before the s of many.
    if initials and re.fullmatch(r"s?|[A-Z].*", name[initials.end() :]):
        return initials[0].upper() + name[initials.end() :]
    return name[0].upper() + name[1:]
