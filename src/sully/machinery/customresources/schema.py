"""The schema of one version of a custom resource, with all that a write does with it."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sully.machinery.customresources import validation
from sully.machinery.customresources.defaulting import default, has_defaults
from sully.machinery.customresources.pruning import HEAD, prune
from sully.machinery.customresources.rules import Rules, rules_of
from sully.machinery.customresources.tables import kind_table
from sully.machinery.fields import FieldError, Path
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.decode import DecodeError, decode

Obj = dict[str, Any]
Schema = Mapping[str, Any]
BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing"
    " errors to complete validation"
)


class CustomSchema(msgspec.Struct, frozen=True, eq=False):
    """What a version of a kind looks like.

    content: the schema without the fields that every object has. head: the table of those.
    """

    whole: Schema
    content: Schema
    table: ObjectType
    head: ObjectType
    api_version: str
    has_defaults: bool
    rules: Rules | None = None

    @classmethod
    def of(
        cls, schema: Schema, *, group: str, version: str, kind: str, head: ObjectType
    ) -> "CustomSchema":
        """Prepare a schema; `head` has apiVersion, kind and metadata."""
        properties = schema.get("properties") or {}
        own = {name: inner for name, inner in properties.items() if name not in HEAD}
        required = [name for name in schema.get("required") or () if name not in HEAD]
        content = {**schema, "properties": own, "required": required}
        package = ".".join((*reversed(group.split(".")), version))
        table = kind_table(content, package, kind, head)
        return cls(
            schema,
            content,
            table,
            head,
            f"{group}/{version}",
            has_defaults(content),
            rules_of(content, is_root=True),
        )

    def read(self, value: Obj, unknown: list[str]) -> Obj:
        """Return an object as it is stored, without unknown fields; raises DecodeError."""
        head = {name: value[name] for name in HEAD if name in value}
        try:
            decoded = decode(head, self.head, unknown)
        except DecodeError as error:
            # Kubernetes reads the metadata of custom resources by itself.
            text = str(error).replace(" ObjectMeta.metadata.", " ObjectMeta.")
            raise DecodeError(text, error.converting) from None
        rest = {name: inner for name, inner in value.items() if name not in HEAD}
        pruned: Obj = prune(rest, self.content, unknown, self._metadata)
        # Kubernetes reports them in this order, whatever the document has.
        unknown.sort()
        return decoded | pruned

    @property
    def _metadata(self) -> ObjectType:
        table = self.head.fields["metadata"].type
        assert isinstance(table, ObjectType)
        return table

    def default(self, obj: Obj) -> None:
        """Set the defaults in place."""
        if self.has_defaults:
            default(obj, self.content)

    def view(self, obj: Obj) -> Obj:
        """Return a stored object as this version shows it: another may have written it."""
        metadata = {"metadata": obj["metadata"]}
        rest = {name: inner for name, inner in obj.items() if name != "metadata"}
        shown: Obj = metadata | prune(rest, self.content, [], self._metadata)
        self.default(shown)
        return shown

    def problems(self, obj: Obj, old: Obj | None = None) -> Iterator[FieldError]:
        """Yield everything in which an object violates the schema, without its rules."""
        root = Path()
        before = {} if old is None else {"old": old}
        yield from validation.problems(obj, self.content, root, **before)
        yield from self._name_problems(obj)
        yield from validation.embedded_problems(obj, self.content, root)
        if old is None or not any(validation.list_problems(old, self.content, root)):
            yield from validation.list_problems(obj, self.content, root)

    def rule_problems(
        self, obj: Obj, old: Obj | None, earlier: list[FieldError]
    ) -> list[FieldError]:
        """Return the rules that an object violates; raises DeferredWorkError.

        `found` are the errors so far: rules are not evaluated on a malformed object.
        """
        if self.rules is None:
            return []
        if any(error.reason in BLOCKING for error in earlier):
            return [Path().invalid(None, _NOT_CHECKED)]
        before = None if old is None else self._visible(old)
        return self.rules.problems(self._visible(obj), before, Path())

    def _visible(self, obj: Obj) -> Obj:
        """Return an object as its rules see it: of the metadata only the names."""
        metadata = obj["metadata"]
        names = {name: metadata[name] for name in ("name", "generateName") if name in metadata}
        head = {"apiVersion": self.api_version, "kind": self.table.name, "metadata": names}
        return {**obj, **head}

    def status_problems(self, obj: Obj, old: Obj) -> Iterator[FieldError]:
        """Yield everything in which a status violates the schema."""
        schema = (self.content.get("properties") or {}).get("status")
        if schema is None or "status" not in obj:
            return
        before = {"old": old["status"]} if "status" in old else {}
        at = Path("status")
        yield from validation.problems_at(obj["status"], schema, at, **before)
        yield from validation.list_problems(obj["status"], schema, at)

    def _name_problems(self, obj: Obj) -> Iterator[FieldError]:
        """Yield how the names violate what the schema requires of them."""
        metadata = (self.whole.get("properties") or {}).get("metadata") or {}
        for name, schema in (metadata.get("properties") or {}).items():
            if name in obj["metadata"]:
                at = Path("metadata").child(name)
                yield from validation.problems(obj["metadata"][name], schema, at)
