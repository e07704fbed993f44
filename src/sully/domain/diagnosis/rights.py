"""Whether the service account of installed controllers has the rights that they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import msgspec

from sully.domain.diagnosis.findings import Finding, failure, listed, ok

Obj = Mapping[str, Any]
RIGHTS = "rights"


class AccessQuestion(msgspec.Struct, frozen=True, order=True):
    """One right, as a SubjectAccessReview asks for it."""

    group: str
    resource: str
    verb: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """Return it as an error of the API names it."""
        resource = f"{self.resource}.{self.group}".rstrip(".")
        return f"{self.verb} {resource}" + (f"/{self.subresource}" if self.subresource else "")

    def attributes(self) -> dict[str, str]:
        """Return the `resourceAttributes` of a review."""
        fields = {
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "verb": self.verb,
            "name": self.name,
            "namespace": self.namespace,
        }
        return {name: value for name, value in fields.items() if value}


def questions(rules: Iterable[Obj], namespace: str = "") -> Iterator[AccessQuestion]:
    """Yield what the rules of a role grant, one right after the other."""
    for rule in rules:
        for group, resource, verb, name in product(
            rule.get("apiGroups") or (),
            rule.get("resources") or (),
            rule.get("verbs") or (),
            rule.get("resourceNames") or ("",),
        ):
            plural, _, subresource = resource.partition("/")
            yield AccessQuestion(group, plural, verb, subresource, name, namespace)


def check_rights(controller: str, denied: Iterable[AccessQuestion]) -> Finding:
    """Check one controller by the rights that it does not have."""
    check = f"{RIGHTS} of {controller}"
    missing = sorted(denied)
    if not missing:
        return ok(check, "all rights are granted")
    return failure(
        check,
        f"not granted: {listed(missing)}",
        "apply 'sully install' again; it writes the roles and their bindings",
    )
