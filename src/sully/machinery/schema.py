"""What a kind looks like on the wire: the field tables, loaded.

A table (`*.fields` under api/) lists types and fields with their flags and descriptions. The same
table drives decoding and strict field checks (serialization/decode.py), strategic merge and
server-side apply (patch/), and the OpenAPI documents behind `kubectl explain` (server).

    DeviceTaint: A taint on one device.
      key=1 string required emit: Key of the taint.
      timeAdded=4 Time: …

Fields stand in the order of Go's structs. A number after the name is the field's in protobuf;
`hostPath=2.1` is field 1 of the message that Go embeds as field 2. A field without a number cannot
be sent in protobuf. `items=24 object wire(Items)` is any JSON, and a message of that type in
protobuf. The Structs of the typed kinds are generated from the same tables
(tools/generate_types.py).

Kinds that are custom resources in OCM also have limits in their tables, such as `maxLength(316)`
and `pattern(name)`; structural.py reads those.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

SCALARS = frozenset(
    (
        "string",
        "int32",
        "int64",
        "number",
        "bool",
        "bytes",
        "Time",
        "MicroTime",
        "Quantity",
        "IntOrString",
        "object",
    )
)


JSON_TYPES: dict[str, dict[str, str]] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
}
"""The scalars that JSON schemas of every dialect write alike."""


class Scalar(msgspec.Struct, frozen=True):
    """A value without fields; `object` is any JSON object, kept as it is."""

    name: str


ANY = Scalar("any")
"""JSON of any form whose objects have one owner per field: what a schema preserves."""


class ListOf(msgspec.Struct, frozen=True):
    """A JSON array."""

    item: "Type"


class MapOf(msgspec.Struct, frozen=True):
    """A JSON object whose keys are data."""

    value: "Type"


class ObjectType(msgspec.Struct, eq=False):
    """A JSON object with known fields. Filled once while tables load, then only read.

    fields: sorted by name, the order of documents and of errors. order: the names as the table has
    them, which is the order of Go's struct. union: exactly one field is set. embedded: the names of
    structs that Go embeds, by their numbers in protobuf. either: JSON has the value of one field in
    place of the object.
    """

    package: str
    name: str
    doc: str
    atomic: bool = False
    union: bool = False
    either: bool = False
    fields: dict[str, "Field"] = msgspec.field(default_factory=dict)
    order: tuple[str, ...] = ()
    embedded: dict[tuple[int, ...], str] = msgspec.field(default_factory=dict)
    is_open: bool = False  # has more fields than these, of any form
    structural: bool = False  # of a custom resource: nothing is written that was not sent
    document: Any = None  # the JSON schema it was made from, for OpenAPI
    compiled: Any = None  # how it merges (patch/shapes.py), once that was asked for

    @property
    def full_name(self) -> str:
        """Return the name under which OpenAPI knows the type."""
        return f"{self.package}.{self.name}"

    @property
    def go_order(self) -> list[str]:
        """Return the fields of Go's struct in its order; none for types that Go does not have."""
        return [name for name in self.order if self.fields[name].number]


Type = Scalar | ListOf | MapOf | ObjectType


class Field(msgspec.Struct, frozen=True):
    """One field of an object type.

    emit: written even when zero. null: written as null when absent. ptr: a zero that was given is
    kept. list_type and map_keys define how apply merges; merge, merge_key, retain_keys and replace
    define how a strategic merge patch does.
    """

    name: str
    type: Type
    doc: str = ""
    required: bool = False
    emit: bool = False
    null: bool = False
    ptr: bool = False
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    merge: bool = False
    merge_key: str = ""
    retain_keys: bool = False
    replace: bool = False  # an object that such a patch does not merge
    default: str | None = None
    go_type: str = ""  # where it is not a plain type; names of the package of the table stand alone
    choices: tuple[str, ...] = ()  # of an enumeration, for documents; not for validation
    nullable: bool = (
        False  # null is a value of its own; only structural.py distinguishes it from absent
    )
    number: tuple[int, ...] = ()  # in protobuf, with those of the embedded messages around it
    wire: Type | None = None  # in protobuf, where that is another type
    limits: "Limits | None" = None


class Limits(msgspec.Struct, frozen=True):
    """The constraints of a table on values; only structural.py enforces them."""

    pattern: str = ""
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    max_items: int | None = None


class TableError(ValueError):
    """A field table that cannot be read."""


_NEXT_TYPE = re.compile(r"\n(?=[^\s#])")
_TYPE_LINE = re.compile(r"^([A-Za-z]\w*)((?: [^\s:]+)*): ?")
_FIELD_LINE = re.compile(r"^  ([A-Za-z$][\w$-]*)(?:=([\d.]+))? ([^\s:]+)((?: [^\s:]+)*): ?(.*)$")


class _Entry(msgspec.Struct):
    """One line of a table with its continuation lines."""

    name: str
    number: str
    type: str
    flags: tuple[str, ...]
    doc: list[str]


class _RawType(msgspec.Struct, frozen=True):
    """A type of a table before references are resolved.

    Its fields are read on first use: a start needs one type in six.
    """

    name: str
    flags: tuple[str, ...]
    text: str  # its description and its fields
    line: int  # where that begins in the file

    def read(self) -> tuple[list[str], list[_Entry]]:
        """Return the lines of its description, and its fields."""
        first, *lines = self.text.split("\n")
        doc, fields = [first], list[_Entry]()
        for number, line in enumerate(lines, self.line + 1):
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("      "):
                (fields[-1].doc if fields else doc).append(line.strip())
            elif match := _FIELD_LINE.match(line):
                flags = tuple(match[4].split())
                fields.append(_Entry(match[1], match[2] or "", match[3], flags, [match[5]]))
            else:
                raise _not_a_line(number, line)
        return doc, fields


Table = tuple[_RawType, ...]
"""The types of one file."""


class Tables:
    """All object types by package; references are resolved on first use."""

    def __init__(self) -> None:
        self._raw: dict[str, dict[str, _RawType]] = {}
        self._left_out: dict[tuple[str, str], frozenset[str]] = {}
        self._aliases: dict[str, str] = {}
        self._patterns: dict[str, str] = {}
        self._built: dict[tuple[str, str], ObjectType] = {}

    def load(self, package: str, alias: str, text: str) -> None:
        """Read one table into a package; a type read again replaces the earlier one."""
        self.add(package, alias, read_table(text))

    def add(self, package: str, alias: str, table: Table) -> None:
        """Add a table that was read already, and may be shared: nothing in it is changed."""
        self._aliases.setdefault(alias, package)
        types = self._raw.setdefault(package, {})
        for raw in table:
            if raw.name == "pattern":
                # A line `pattern name: expression`; fields refer to it as pattern(name).
                self._patterns[raw.flags[0]] = "".join(raw.read()[0])
            else:
                types[raw.name] = raw

    def leave_out(self, fields: Mapping[str, Iterable[str]]) -> None:
        """Remove fields of types, in every package; before the first use."""
        for package, types in self._raw.items():
            for name, gone in fields.items():
                if name in types:
                    before = self._left_out.get((package, name), frozenset())
                    self._left_out[package, name] = before.union(gone)

    def get(self, package: str, name: str) -> ObjectType:
        """Return a type with everything it refers to."""
        built = self._built.get((package, name))
        if built is not None:
            return built
        try:
            raw = self._raw[package][name]
        except KeyError:
            raise TableError(f"no type {name} in package {package}") from None
        doc, fields = raw.read()
        gone = self._left_out.get((package, name), ())
        entries = [entry for entry in fields if entry.name not in gone]
        object_type = ObjectType(
            package,
            name,
            _prose(doc),
            atomic="atomic" in raw.flags,
            union="union" in raw.flags,
            either="either" in raw.flags,
            embedded=_embedded(raw.flags),
        )
        self._built[package, name] = object_type
        object_type.order = tuple(entry.name for entry in entries)
        for entry in sorted(entries, key=lambda entry: entry.name):
            object_type.fields[entry.name] = self._field(package, entry)
        return object_type

    def types(self, package: str) -> Iterator[ObjectType]:
        """Go through every type of a package."""
        for name in self._raw[package]:
            yield self.get(package, name)

    def _field(self, package: str, entry: _Entry) -> Field:
        # By the names of the fields of Field and Limits.
        options: dict[str, Any] = {}
        limits: dict[str, Any] = {}
        for flag in entry.flags:
            if limit := _limit(flag, self._patterns):
                limits.update(limit)
            elif flag.startswith("wire("):
                options["wire"] = self._type(package, flag[len("wire(") : -1])
            else:
                options.update(_flag(flag))
        if limits:
            options["limits"] = Limits(**limits)
        if entry.number:
            options["number"] = tuple(map(int, entry.number.split(".")))
        kind = self._type(package, entry.type)
        return Field(entry.name, kind, _prose(entry.doc), **options)

    def _type(self, package: str, text: str) -> Type:
        if text.startswith("[]"):
            return ListOf(self._type(package, text[2:]))
        if text.startswith("{}"):
            return MapOf(self._type(package, text[2:]))
        if text in SCALARS:
            return Scalar(text)
        alias, dot, name = text.rpartition(".")
        return self.get(self._aliases[alias] if dot else package, name)


def read_table(text: str) -> Table:
    """Return the types of one table."""
    types: list[_RawType] = []
    line = 1
    for part in _NEXT_TYPE.split(text):
        if match := _TYPE_LINE.match(part):
            types.append(_RawType(match[1], tuple(match[2].split()), part[match.end() :], line))
        elif wrong := [row for row in part.split("\n") if row.strip() and row[0] != "#"]:
            raise _not_a_line(line, wrong[0])
        line += part.count("\n") + 1
    return tuple(types)


def _not_a_line(number: int, line: str) -> TableError:
    return TableError(f"line {number} is neither a type nor a field: {line!r}")


def _embedded(flags: Iterable[str]) -> dict[tuple[int, ...], str]:
    """Read a flag such as `embeds(2=VolumeSource)`, or `2.2` for a struct in that one."""
    names = (flag[len("embeds(") : -1] for flag in flags if flag.startswith("embeds("))
    pairs = (pair.partition("=") for text in names for pair in text.split(","))
    return {tuple(map(int, number.split("."))): name for number, _, name in pairs}


def _flag(flag: str) -> dict[str, object]:
    name, _, argument = flag.rstrip(")").partition("(")
    if flag in ("required", "emit", "null", "nullable", "ptr", "replace"):
        return {flag: True}
    if flag in ("atomic", "set"):
        return {"list_type": flag}
    if name == "map":
        return {"list_type": "map", "map_keys": tuple(argument.split(","))}
    if name == "merge":
        return {"merge": True, "merge_key": argument}
    if flag == "retainKeys":
        return {"retain_keys": True}
    if name == "enum":
        return {"choices": tuple(argument.split(","))}
    if name == "go":
        return {"go_type": argument}
    if flag.startswith("default="):
        return {"default": flag.removeprefix("default=")}
    raise TableError(f"unknown flag {flag!r}")


_NUMBERS = {
    "min": "minimum",
    "max": "maximum",
    "minLength": "min_length",
    "maxLength": "max_length",
    "maxItems": "max_items",
}


def _limit(flag: str, patterns: Mapping[str, str]) -> dict[str, object]:
    name, _, argument = flag.rstrip(")").partition("(")
    if name == "pattern":
        if argument not in patterns:
            raise TableError(f"no pattern {argument}")
        return {"pattern": patterns[argument]}
    return {_NUMBERS[name]: int(argument)} if name in _NUMBERS else {}


def _prose(lines: list[str]) -> str:
    return " ".join(line for line in lines if line)
