"""Whether a definition can be served, with the texts of Kubernetes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from sully.api.apiextensions.names import ESTABLISHED, is_true
from sully.api.apiextensions.rules import rules_problems
from sully.api.apiextensions.schemas import schema_problems
from sully.api.core.checks import one_of, unchanged
from sully.machinery.customresources import jsonpath
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_subdomain_problems, rfc1035_label_problems

Obj = dict[str, Any]
Errors = Iterator[FieldError]

SPEC: Final = Path("spec")
MAX_SELECTABLE: Final = 8
APPROVAL: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    *("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),
)


def definition_problems(obj: Obj, old: Obj | None = None) -> Errors:
    """Yield everything for which a definition is refused."""
    spec = obj["spec"]
    yield from _group_problems(spec.get("group", ""))
    yield from one_of(
        spec.get("scope", ""), ("Cluster", "Namespaced"), SPEC.child("scope"), required=True
    )
    yield from _versions_problems(spec)
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec["names"].get(name):
            yield SPEC.child("names", name).required()
    yield from names_problems(spec["names"], SPEC.child("names"))
    yield from _shared_problems(spec)
    yield from _conversion_problems(spec.get("conversion") or {})
    if old is not None:
        yield from _update_problems(spec, old)
    yield from _stored_problems(obj)
    yield from _approval_problems(obj, old)
    if spec.get("preserveUnknownFields"):
        yield SPEC.child("preserveUnknownFields").invalid(
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            " spec.versions[*].schema instead",
        )


def name_problems(obj: Obj, name: str) -> list[str]:
    """Return what is wrong with the name of a definition."""
    spec = obj["spec"]
    required = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
    own = ['must be spec.names.plural+"."+spec.group'] if name != required else []
    return [*dns_subdomain_problems(name), *own]


def _group_problems(group: str) -> Errors:
    at = SPEC.child("group")
    if not group:
        yield at.required()
    elif problems := dns_subdomain_problems(group):
        yield at.invalid(group, ",".join(problems))
    elif "." not in group:
        yield at.invalid(group, "should be a domain with at least one dot")


def _versions_problems(spec: Obj) -> Errors:
    versions, at = spec.get("versions") or [], SPEC.child("versions")
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield at.index(index).child("schema", "openAPIV3Schema").required()
    for index, version in enumerate(versions):
        if problems := rfc1035_label_problems(version["name"]):
            yield at.index(index).child("name").invalid(version["name"], ",".join(problems))
        yield from _version_problems(version, at.index(index), _shared(spec))
    names = [version["name"] for version in versions]
    if len({*names}) != len(names):
        yield at.invalid(_as_go(spec), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield at.invalid(_as_go(spec), "must have exactly one version marked as storage version")
    if names and (problems := rfc1035_label_problems(names[0])):
        # An older field that has the name of the first version.
        yield SPEC.child("version").invalid(names[0], ",".join(problems))


def _as_go(spec: Obj) -> list[Obj] | None:
    """Return versions as Kubernetes prints them; what all have in common is elsewhere there."""
    shared = _shared(spec)
    if spec.get("versions") is None:
        return None
    return [
        {
            "Name": version["name"],
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
        }
        | {
            f"{part[0].upper()}{part[1:]}": None if part in shared else version.get(part)
            for part in _PARTS
        }
        for version in spec["versions"]
    ]


_PARTS: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""What versions can have each of their own, and what Kubernetes calls it if all have the same."""


def _shared(spec: Obj) -> frozenset[str]:
    """Return the parts that all versions have in common: errors name them without a version."""
    versions = spec.get("versions") or []
    return frozenset(
        part
        for part in _PARTS
        if versions
        and versions[0].get(part)
        and all(v.get(part) == versions[0][part] for v in versions)
    )


def _shared_problems(spec: Obj) -> Errors:
    shared = _shared(spec)
    if not shared:
        return
    version = spec["versions"][0]
    has_status = any("status" in (v.get("subresources") or {}) for v in spec["versions"])
    for part, name in _PARTS.items():
        if part in shared:
            yield from _part_problems(part, version, SPEC.child(name), has_status=has_status)


def _version_problems(version: Obj, at: Path, shared: Collection[str]) -> Errors:
    warning = version.get("deprecationWarning")
    for problem in _warning_problems(warning, deprecated=bool(version.get("deprecated"))):
        yield at.child("deprecationWarning").invalid(warning, problem)
    has_status = "status" in (version.get("subresources") or {})
    for part in _PARTS:
        if part not in shared:
            yield from _part_problems(part, version, at.child(part), has_status=has_status)


def _part_problems(part: str, version: Obj, at: Path, *, has_status: bool) -> Errors:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    match part:
        case "schema" if schema is not None:
            here = at.child("openAPIV3Schema")
            errors = list(schema_problems(schema, here, has_status=has_status))
            yield from errors
            if not errors:
                yield from rules_problems(schema, here)
        case "subresources" if "scale" in (version.get(part) or {}):
            yield from _scale_problems(version[part]["scale"], at)
        case "additionalPrinterColumns":
            for index, column in enumerate(version.get(part) or ()):
                yield from _column_problems(column, at.index(index))
        case "selectableFields" if version.get(part):
            yield from _selectable_problems(version[part], schema or {}, at)
        case _:
            return


def _warning_problems(warning: str | None, *, deprecated: bool) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    for index, char in enumerate(warning):
        if not char.isprintable():
            yield (
                "must only contain printable UTF-8 characters; non-printable character found at"
                f" index {index}"
            )
            return


def names_problems(names: Obj, at: Path) -> Errors:
    """Yield what is wrong with the names of a kind."""
    for name in ("plural", "singular"):
        if names.get(name) and (problems := rfc1035_label_problems(names[name])):
            yield at.child(name).invalid(names[name], ",".join(problems))
    for name in ("kind", "listKind"):
        if names.get(name) and (problems := rfc1035_label_problems(names[name].lower())):
            text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield at.child(name).invalid(names[name], text)
    for name in ("shortNames", "categories"):
        if name == "categories" and names.get("kind") and names["kind"] == names.get("listKind"):
            text = "kind and listKind may not be the same"
            yield at.child("listKind").invalid(names["listKind"], text)
        for index, value in enumerate(names.get(name) or ()):
            if problems := rfc1035_label_problems(value):
                yield at.child(name).index(index).invalid(value, ",".join(problems))


def _scale_problems(scale: Obj, at: Path) -> Errors:
    for name, parents in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        path, here = scale.get(name), at.child("scale", name)
        if not path:
            if name != "labelSelectorPath":
                yield here.required()
            continue
        simple = list(_path_problems(path, here))
        yield from simple
        if not simple and not path.startswith(parents):
            fields = parents[0][:-1] if len(parents) == 1 else "either .spec or .status"
            yield here.invalid(path, f"should be a json path under {fields}")


def _path_problems(path: str, at: Path) -> Errors:
    if not path.startswith("."):
        yield at.invalid(path, "must be a simple json path starting with .")


def _column_problems(column: Obj, at: Path) -> Errors:
    if not column.get("name"):
        yield at.child("name").required()
    choices = ",".join(_COLUMN_TYPES)
    if not column.get("type"):
        yield at.child("type").required(f"must be one of {choices}")
    elif column["type"] not in _COLUMN_TYPES:
        yield at.child("type").invalid(column["type"], f"must be one of {choices}")
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        text = f"must be one of {','.join(_COLUMN_FORMATS)}"
        yield at.child("format").invalid(column["format"], text)
    path, here = column.get("jsonPath"), at.child("JSONPath")
    if not path:
        yield here.required()
        return
    simple = list(_path_problems(path, here))
    yield from simple
    if not simple:
        yield from _unsupported_path(path, here)


def _unsupported_path(path: str, at: Path) -> Errors:
    """Refuse what Kubernetes would print as an empty table."""
    try:
        jsonpath.parse(path)
    except jsonpath.JSONPathError as error:
        yield at.invalid(path, f"unrecognized column definition: {error}")


def _selectable_problems(fields: Sequence[Obj], schema: Obj, at: Path) -> Errors:
    seen: set[str] = set()
    for index, field in enumerate(fields):
        path, here = field.get("jsonPath", ""), at.index(index).child("jsonPath")
        if not path:
            yield here.required()
            continue
        selected = _schema_at(schema, path)
        if selected is None:
            yield here.invalid(path, f"is an invalid path: {_path_error(schema, path)}")
            continue
        if path.startswith(".metadata"):
            yield here.invalid(path, "must not point to fields in metadata")
        if selected.get("type") not in ("string", "boolean", "integer"):
            yield here.invalid(
                path,
                "must point to a field of type string, boolean or integer. Enum string fields and"
                " strings with formats are allowed.",
            )
        if path in seen:
            yield here.duplicate(path)
        seen.add(path)
    if len(seen) > MAX_SELECTABLE:
        yield at.too_many(len(seen), MAX_SELECTABLE)


def _schema_at(schema: Any, path: str) -> Mapping[str, Any] | None:
    for name in path[1:].split("."):
        schema = (schema.get("properties") or {}).get(name)
        if schema is None:
            return None
    return schema if path.startswith(".") else None


def _path_error(schema: Any, path: str) -> str:
    for name in path[1:].split("."):
        schema = (schema.get("properties") or {}).get(name)
        if schema is None:
            return "does not refer to a valid field"
    return "must start with ."


def _conversion_problems(conversion: Obj) -> Errors:
    at = SPEC.child("conversion")
    strategy = conversion.get("strategy", "")
    yield from one_of(strategy, ("None", "Webhook"), at.child("strategy"), required=True)
    if strategy == "Webhook":
        yield at.child("strategy").forbidden(
            "conversion webhooks are not supported by this server, use None"
        )
    elif conversion.get("webhook") is not None:
        text = "should not be set when strategy is not set to Webhook"
        yield at.child("webhookClientConfig").forbidden(text)


def _update_problems(spec: Obj, old: Obj) -> Errors:
    before = old["spec"]
    if is_true(old, ESTABLISHED):
        yield from unchanged(spec.get("scope"), before.get("scope"), SPEC.child("scope"))
        kinds = (spec["names"].get("kind"), before["names"].get("kind"))
        yield from unchanged(*kinds, SPEC.child("names", "kind"))
    yield from unchanged(spec.get("group"), before.get("group"), SPEC.child("group"))
    plurals = (spec["names"].get("plural"), before["names"].get("plural"))
    yield from unchanged(*plurals, SPEC.child("names", "plural"))


def _stored_problems(obj: Obj) -> Errors:
    stored, at = obj["status"].get("storedVersions") or [], Path("status").child("storedVersions")
    if not stored:
        yield at.invalid(None, "must have at least one stored version")
        return
    missing = {name: index for index, name in enumerate(stored)}
    for version in obj["spec"].get("versions") or ():
        known = missing.pop(version["name"], None) is not None
        if version.get("storage") and not known:
            yield at.invalid(stored, f"must have the storage version {version['name']}")
    for name, index in missing.items():
        yield at.index(index).invalid(
            name,
            f"missing from spec.versions; {name} was previously a storage version, and must"
            " remain in spec.versions until a storage migration ensures no data remains"
            f" persisted in {name} and removes {name} from status.storedVersions",
        )


def _approval_problems(obj: Obj, old: Obj | None) -> Errors:
    group = obj["spec"].get("group", "")
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in (
        "k8s.io",
        "kubernetes.io",
    ):
        return
    value = _approval(obj)
    if old is not None and value == _approval(old):
        return
    at = Path("metadata").child("annotations").key(APPROVAL)
    intro = f'protected groups must have approval annotation "{APPROVAL}"'
    link = "see https://github.com/kubernetes/enhancements/pull/1111"
    if value is None:
        yield at.required(f"{intro}, {link}")
    elif not value.startswith(("https://", "http://", "unapproved")):
        how = 'with either a URL or a reason starting with "unapproved"'
        yield at.invalid(value, f"{intro} {how}, {link}")


def _approval(obj: Obj) -> str | None:
    annotations: dict[str, str] = obj["metadata"].get("annotations") or {}
    return annotations.get(APPROVAL)
