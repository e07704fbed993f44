"""The conflicts of an apply that would change fields of other managers. Texts are Kubernetes'."""

from collections.abc import Iterator

from sully.machinery.errors import Conflict
from sully.machinery.gotext import quote
from sully.machinery.patch.entries import Owner
from sully.machinery.patch.fieldset import FieldSet, Tree, path_text

Conflicts = dict[Owner, Tree]


def refusal(conflicts: Conflicts) -> Conflict:
    """Say who owns what, so that the client can force, give in or share."""
    found = list(_found(conflicts))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, path in found
    ]
    return Conflict(_message(found), details={"causes": causes})


def _found(conflicts: Conflicts) -> Iterator[tuple[str, str]]:
    for owner in sorted(conflicts):
        for path in FieldSet(conflicts[owner]).paths():
            yield _name(owner), path_text(path)


def _message(found: list[tuple[str, str]]) -> str:
    if len(found) == 1:
        return f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    lines: list[str] = []
    last = None
    for who, path in found:
        if who != last:
            lines.append(f"conflicts with {who}:")
        lines.append(f"- {path}")
        last = who
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _name(owner: Owner) -> str:
    name = quote(owner.manager)
    if owner.subresource:
        name += f" with subresource {quote(owner.subresource)}"
    return f"{name} using {owner.api_version}" if owner.operation == "Update" else name
