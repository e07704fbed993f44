"""The conflicts of an apply that would change fields of other managers. Texts are Kubernetes'."""

from collections.abc import Iterator

from sully.machinery.errors import Conflict
from sully.machinery.gotext import quote
from sully.machinery.patch.entries import Owner
from sully.machinery.patch.fieldset import FieldSet, Tree, path_text

Conflicts = dict[Owner, Tree]


def refusal(conflicts: Conflicts) -> Conflict:
    """Return the error with the owner of each field, as Kubernetes does."""
    fields = list(_conflicting_fields(conflicts))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, path in fields
    ]
    return Conflict(_message(fields), details={"causes": causes})


def _conflicting_fields(conflicts: Conflicts) -> Iterator[tuple[str, str]]:
    for owner in sorted(conflicts):
        for path in FieldSet(conflicts[owner]).paths():
            yield _name(owner), path_text(path)


def _message(fields: list[tuple[str, str]]) -> str:
    if len(fields) == 1:
        return f"Apply failed with 1 conflict: conflict with {fields[0][0]}: {fields[0][1]}"
    lines: list[str] = []
    last = None
    for who, path in fields:
        if who != last:
            lines.append(f"conflicts with {who}:")
        lines.append(f"- {path}")
        last = who
    return f"Apply failed with {len(fields)} conflicts: " + "\n".join(lines)


def _name(owner: Owner) -> str:
    name = quote(owner.manager)
    if owner.subresource:
        name += f" with subresource {quote(owner.subresource)}"
    return f"{name} using {owner.api_version}" if owner.operation == "Update" else name
