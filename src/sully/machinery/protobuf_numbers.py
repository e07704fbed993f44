"""Which number stands for which field in protobuf, read from tables beside the field tables.

    ConfigMap metadata=1 data=2 binaryData=3 immutable=4
    Volume name=1 +VolumeSource=2
    VolumeSource hostPath=1 emptyDir=2

A `+Name` is a message that Go embeds: its fields are written as fields of the type itself in JSON.
`like v1` takes over everything of another version; types named after it replace what it brought.
Fields stand in the order of Go's structs, which is not always that of the numbers: error texts that
quote a whole object have it (patch/quoting.py).
Clients that write protobuf are few and start-up is not theirs to pay for: a table is read when the
first message needs it. A field without a number cannot be sent in protobuf and is passed over.
"""

from collections.abc import Callable, Iterator

from sully.machinery.schema import Field, ObjectType, TableError

# Either a field or the slots of an embedded message.
Slot = Field | dict[int, "Slot"]
_Names = dict[str, list[tuple[str, int]]]


class Numbers:
    """The slots of every type; `read` returns the text of a package's table, empty for none."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._names: dict[str, _Names] = {}
        self._slots: dict[tuple[str, str], dict[int, Slot]] = {}

    def of(self, kind: ObjectType) -> dict[int, Slot]:
        """Return the fields of a type by their numbers."""
        key = (kind.package, kind.name)
        known = self._slots.get(key)
        if known is None:
            known = self._slots[key] = self._build(kind, kind.name)
        return known

    def names(self, package: str) -> _Names:
        """Return the numbered names of every type of a package."""
        known = self._names.get(package)
        if known is None:
            known = self._names[package] = self._parse(package)
        return known

    def order(self, kind: ObjectType) -> list[str]:
        """Return the names of a type's fields as Go writes them; none where it has no numbers."""
        return list(self._ordered(kind.package, kind.name))

    def _ordered(self, package: str, message: str) -> Iterator[str]:
        for name, _ in self.names(package).get(message, ()):
            if name.startswith("+"):
                yield from self._ordered(package, name[1:])
            else:
                yield name

    def _build(self, kind: ObjectType, message: str) -> dict[int, Slot]:
        slots: dict[int, Slot] = {}
        for name, number in self.names(kind.package).get(message, ()):
            if name.startswith("+"):
                slots[number] = self._build(kind, name[1:])
            elif name in kind.fields:
                slots[number] = kind.fields[name]
        return slots

    def _parse(self, package: str) -> _Names:
        found: _Names = {}
        for line in _joined(self._read(package)):
            name, *entries = line.split()
            if name == "like":
                found |= self.names(f"{package.rpartition('.')[0]}.{entries[0]}")
            else:
                found[name] = [_entry(entry) for entry in entries]
        return found


def _joined(text: str) -> list[str]:
    """Put lines that continue a type behind its first line."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            lines[-1] += line
        elif line and not line.startswith("#"):
            lines.append(line)
    return lines


def _entry(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isdigit():
        raise TableError(f"{text!r} is not of the form name=number")
    return name, int(number)
