"""Writes the Structs of the typed kinds from the field tables. `make generate` runs it.

A table defines what a type looks like on the wire; a Struct is the same type for readers of objects
and decides. They are in `_generated/` folders, one module a group; `types.py` of the group exports
them together with what is written by hand. `tests/architecture` fails if one is stale.

How flags of a field become the type and the default of a member is `_member`; what tables cannot
say is in the constants below.
"""

import importlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Tables, Type

ROOT = Path(__file__).resolve().parent.parent

FOLDERS: Final = ("meta", "core", "resource", "cluster", "sully")
"""The groups whose tables are needed. Only tables: strategies need what is written here."""
PACKAGES: Final = (
    "io.k8s.api.resource.v1",
    "io.open-cluster-management.cluster.v1",
    "io.open-cluster-management.cluster.v1beta2",
    "io.open-cluster-management.cluster.v1beta1",
    "io.open-cluster-management.cluster.v1alpha1",
    "dev.sully.api.v1alpha1",
)
"""Where the typed kinds are; of a kind in several of them the first counts."""
MODULES: Final = {
    "io.k8s.apimachinery.pkg.apis.meta": "sully.machinery._generated.meta",
    "io.k8s.api.core": "sully.api.core._generated.types",
    "io.k8s.api.resource": "sully.api.resource._generated.types",
    "io.open-cluster-management.cluster": "sully.api.cluster._generated.types",
    "dev.sully.api": "sully.api.sully._generated.types",
}
"""Where the types of a package go, whatever its version."""
STRUCTURAL: Final = "sully.api.cluster._generated.types"
"""Custom resources: what the schema sets a default for is there, and amounts may be numbers."""
SAME: Final = {
    "io.k8s.api.resource.v1.DevicePatchFilter": "io.k8s.api.resource.v1.DeviceTaintSelector",
    **{
        f"io.open-cluster-management.cluster.{version}.Condition": (
            "io.k8s.apimachinery.pkg.apis.meta.v1.Condition"
        )
        for version in ("v1", "v1beta2", "v1beta1", "v1alpha1")
    },
}
"""Types that are read as another one, which has the same fields."""
EXTENDS: Final = {"NullableDeviceAttribute": "DeviceAttribute"}
"""Types that have all fields of another one and more."""
BASES: Final = {
    "Device": ("sully.api.resource.sharing", "SharedContent"),
    "ObjectMeta": ("sully.machinery.serialization.wire", "HasController"),
}
"""Types that can do something, and the class written by hand that does it."""
LEFT_OUT: Final = ("ObjectMeta.selfLink", "ObjectMeta.managedFields")
"""Fields that cost time in every object that is read: no server sets the first any more, and the
second are half of many objects."""
TRACKED: Final = ("DeviceTaintRule", "ResourceSlicePatch", "ManagedCluster")
"""Kinds that people write, whose managedFields are read to find out who did."""
NAMES: Final = {
    "DeviceAttribute.int": "int_value",
    "DeviceAttribute.bool": "bool_value",
    "DeviceAttribute.string": "string_value",
    "DeviceAttribute.version": "version_value",
    "CapacityRequestPolicyRange.min": "minimum",
    "CapacityRequestPolicyRange.max": "maximum",
}
"""Members whose names on the wire mean something else in Python, and those beside them."""

_SCALARS: Final = {
    "string": ("str", '""'),
    "int32": ("int", "0"),
    "int64": ("int", "0"),
    "number": ("float", "0.0"),
    "bool": ("bool", "False"),
    "bytes": ("str", '""'),
    "Time": ("datetime", ""),
    "MicroTime": ("datetime", ""),
    "Quantity": ("str", ""),
    "IntOrString": ("int | str", ""),
    "object": ("Any", ""),
}
"""The Python type of a scalar and its zero; those without a zero are None when absent."""


@dataclass
class Module:
    """One generated module: its classes in an order in which each comes after what it uses."""

    name: str
    classes: dict[str, str] = field(default_factory=dict)
    imports: dict[str, set[str]] = field(default_factory=dict)

    def use(self, module: str, name: str) -> str:
        """Return a name of another module, importing it."""
        if module != self.name:
            self.imports.setdefault(module, set()).add(name)
        return name


def main() -> int:
    """Write the modules that are not on disk as they should be."""
    for path, text in stale_modules().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
        print(f"written: {path}")
    return 0


def stale_modules() -> dict[Path, str]:
    """Return the files that are not on disk as they should be, with their right text."""
    return {
        path: text
        for path, text in files().items()
        if not (ROOT / path).exists() or (ROOT / path).read_text() != text
    }


def files() -> dict[Path, str]:
    """Return every generated file by its path in the project."""
    tables = Tables()
    for folder in FOLDERS:
        importlib.import_module(f"sully.api.{folder}").load_tables(tables)
    writer = _Writer(tables)
    files: dict[Path, str] = {}
    for module in writer.modules.values():
        path = Path("src", *module.name.split(".")).with_suffix(".py")
        files[path] = _formatted(_text(module))
        files[path.with_name("__init__.py")] = (
            '"""Written by tools/generate_types.py.\n\n'
            "Owns: the Structs of the types that the field tables describe.\n"
            "Never: is edited by hand.\n"
            'Start at: the `*.fields` of the group.\n"""\n'
        )
    return files


class _Writer:
    """Goes from the typed kinds to everything they refer to."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.modules = {name: Module(name) for name in MODULES.values()}
        for package in PACKAGES:
            for kind in tables.types(package):
                if _is_kind(kind) and kind.name not in self._module(kind).classes:
                    self._struct(kind)

    def _module(self, kind: ObjectType) -> Module:
        return self.modules[MODULES[kind.package.rpartition(".")[0]]]

    def _struct(self, kind: ObjectType) -> tuple[str, str]:
        """Write a type after all that it refers to; return its module and name."""
        if same := SAME.get(kind.full_name):
            package, _, name = same.rpartition(".")
            other = self._tables.get(package, name)
            if other.fields.keys() != kind.fields.keys():
                raise ValueError(f"{kind.full_name} does not have the fields of {same}")
            kind = other
        module = self._module(kind)
        text = self._class(kind, module)
        # Several versions of a group may have a type; only one shape of it can be typed.
        if module.classes.setdefault(kind.name, text) != text:
            raise ValueError(f"{kind.full_name} differs from another version of it")
        return module.name, kind.name

    def _class(self, kind: ObjectType, module: Module) -> str:
        base = module.use(*BASES.get(kind.name, ("sully.machinery.serialization.wire", "Wire")))
        names = [name for name in kind.order if _is_member(kind, name)]
        if extended := EXTENDS.get(kind.name):
            base, inherited = extended, self._tables.get(kind.package, extended)
            self._struct(inherited)
            if not inherited.fields.keys() <= kind.fields.keys():
                raise ValueError(f"{kind.name} does not have the fields of {extended}")
            names = [name for name in names if name not in inherited.fields]
        lines = [f"class {kind.name}({base}, frozen=True, kw_only=True):"]
        lines += _docstring(kind.doc)
        for name in names:
            lines.append(f"    {self._member(kind, kind.fields[name], module)}")
        return "\n".join(lines)

    def _member(self, kind: ObjectType, one: Field, module: Module) -> str:
        python = NAMES.get(f"{kind.name}.{one.name}") or _snake(one.name)
        options: list[str] = []
        if _camel(python) != one.name:
            options = [f'name="{one.name}"']
        type_ = self._type(one.type, module)
        if kind.name in TRACKED and one.name == "metadata":
            type_ = module.use("sully.machinery.meta", "TrackedMeta")
        default = _default(kind, one, type_, structural=module.name == STRUCTURAL)
        if default is None:
            return f"{python}: {type_}"
        if default == "None" and type_ != "Any":
            type_ += " | None"
        if default == "dict":
            options.insert(0, "default_factory=dict")
        elif options:
            options.insert(0, f"default={default}")
        if options:
            default = f"{module.use('msgspec', 'field')}({', '.join(options)})"
        return f"{python}: {type_} = {default}"

    def _type(self, type_: Type, module: Module) -> str:
        match type_:
            case ListOf():
                return f"tuple[{self._type(type_.item, module)}, ...]"
            case MapOf():
                return f"dict[str, {self._type(type_.value, module)}]"
            case ObjectType():
                return module.use(*self._struct(type_))
            case Scalar("Quantity") if module.name == STRUCTURAL:
                return "str | int"
            case Scalar("Time" | "MicroTime"):
                return module.use("datetime", "datetime")
            case Scalar("object"):
                return module.use("typing", "Any")
            case Scalar():
                return _SCALARS[type_.name][0]


def _default(kind: ObjectType, one: Field, type_: str, *, structural: bool) -> str | None:
    """Return the default of a member as Python writes it; None if it must be given."""
    if kind.union or one.null or one.ptr:
        return "None"
    match one.type:
        case ListOf():
            return "()"
        case MapOf():
            return "dict"
        case ObjectType():
            if structural or (one.emit and not one.required):
                # An object that lacks metadata is none; everything else may be absent.
                return None if one.name == "metadata" and _is_kind(kind) else f"{type_}()"
            return None if one.required else "None"
        case Scalar(name):
            return _scalar_default(name, one, structural=structural)


def _scalar_default(name: str, one: Field, *, structural: bool) -> str | None:
    type_, zero = _SCALARS[name]
    if structural and one.default is not None:
        return one.default if type_ == "int" else f'"{one.default}"'
    if name == "Quantity" and not one.emit:
        return "None"  # if it is required, then by validation only: a pointer in Go
    return None if one.required else zero or "None"


_HEAD: Final = ("apiVersion", "kind")
"""Fields that only name the kind, which readers know."""


def _is_kind(kind: ObjectType) -> bool:
    """Report whether objects of a type are stored: lists are not."""
    metadata = kind.fields.get("metadata")
    typed = isinstance(metadata and metadata.type, ObjectType) and "kind" in kind.fields
    return typed and not kind.name.endswith("List")


def _is_member(kind: ObjectType, name: str) -> bool:
    head = name in _HEAD and _is_kind(kind)
    return not head and f"{kind.name}.{name}" not in LEFT_OUT


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _camel(name: str) -> str:
    """Return the name on the wire that msgspec gives a member."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _docstring(doc: str) -> Iterator[str]:
    sentence = re.split(r"(?<=[.]) ", doc, maxsplit=1)[0]
    lines = textwrap.wrap(f'"""{sentence}"""', 92, break_on_hyphens=False)
    yield from (f"    {line}" for line in lines)
    yield ""


def _text(module: Module) -> str:
    """Return a module as text; formatting is left to the formatter."""
    lines = ['"""Generated by make generate from the field tables."""']
    blocks = ("datetime", "typing"), ("msgspec",), (name for name in module.imports if "." in name)
    for block in blocks:
        if names := sorted(module.imports.keys() & set(block)):
            lines += ["", *(_import(name, module.imports[name]) for name in names)]
    lines += ["", f"__all__ = {sorted(module.classes)!r}", ""]
    return "\n".join([*lines, *module.classes.values()]) + "\n"


def _import(module: str, names: set[str]) -> str:
    return f"from {module} import {', '.join(sorted(names))}"


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "-q", "-"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
