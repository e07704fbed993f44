"""Role bindings: the subjects that get the rules of a role, in one namespace or everywhere."""

from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.core.checks import formatted
from sully.api.core.columns import AGE, NAME, plain
from sully.api.rbac.kinds import kind_of
from sully.api.rbac.names import GROUP
from sully.machinery.declared import declared
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_subdomain_problems, path_segment_problems
from sully.machinery.strategy import Column, Strategy, WriteContext

Obj = dict[str, Any]

_NO_ROLE = Path("roleRef.name").required()


class BindingStrategy(Strategy, frozen=True):
    """Writes to bindings of a namespace."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in the groups of the role and of the subjects."""
        if not obj["roleRef"].get("apiGroup"):
            obj["roleRef"]["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the reference and every subject."""
        for problem in _validate(obj, namespaced=self.namespaced()):
            yield from declared([problem]) if problem == _NO_ROLE else [problem]

    def namespaced(self) -> bool:
        """Report whether the bindings are those of a namespace."""
        return True

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the same, and that the role stays: a binding to another role is another one."""
        # The schema looks no further into a role that has changed, so its name is found by hand.
        yield from _validate(obj, namespaced=self.namespaced())
        if obj["roleRef"] != old["roleRef"]:
            ref = obj["roleRef"]
            shown = {"APIGroup": ref["apiGroup"], "Kind": ref["kind"], "Name": ref["name"]}
            yield Path("roleRef").invalid(shown, "field is immutable")

    def validate_name(self, name: str) -> Sequence[str]:
        """Allow whatever is allowed in a path: names of bindings have colons."""
        return path_segment_problems(name)


class ClusterBindingStrategy(BindingStrategy, frozen=True):
    """Writes to bindings of the cluster."""

    def namespaced(self) -> bool:
        """Report whether the bindings are those of a namespace."""
        return False


def _validate(obj: Obj, *, namespaced: bool) -> Iterator[FieldError]:
    yield from _role_ref(obj["roleRef"], Path("roleRef"), namespaced=namespaced)
    for position, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject(subject, Path("subjects").index(position), namespaced=namespaced)


def _role_ref(ref: Obj, at: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if ref["apiGroup"] != GROUP:
        yield at.child("apiGroup").not_supported(ref["apiGroup"], (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if ref["kind"] not in kinds:
        yield at.child("kind").not_supported(ref["kind"], kinds)
    if not ref["name"]:
        yield at.child("name").required()
    else:
        yield from formatted(ref["name"], path_segment_problems, at.child("name"))


def _subject(subject: Obj, at: Path, *, namespaced: bool) -> Iterator[FieldError]:
    name, group = subject["name"], subject.get("apiGroup", "")
    if not name:
        yield from declared([at.child("name").required()])
    match subject["kind"]:
        case "ServiceAccount":
            if name:
                yield from formatted(name, dns_subdomain_problems, at.child("name"))
            if group:
                yield at.child("apiGroup").not_supported(group, ("",))
            if not namespaced and not subject.get("namespace"):
                yield at.child("namespace").required()
        case "User" | "Group":
            if group != GROUP:
                yield at.child("apiGroup").not_supported(group, (GROUP,))
        case kind:
            supported = ("ServiceAccount", "User", "Group")
            yield at.child("kind").not_supported(kind, supported)


def _role(obj: Obj) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def _named(obj: Obj, kind: str) -> str:
    subjects = [subject for subject in obj.get("subjects") or () if subject["kind"] == kind]
    return ", ".join(
        f"{subject['namespace']}/{subject['name']}" if subject.get("namespace") else subject["name"]
        for subject in subjects
    )


_COLUMNS = (
    NAME,
    Column("Role", plain(_role), description="Kind and name of the role that is bound."),
    AGE,
    Column(
        "Users",
        plain(lambda obj: _named(obj, "User")),
        priority=1,
        description="Users who get the permissions of the role.",
    ),
    Column(
        "Groups",
        plain(lambda obj: _named(obj, "Group")),
        priority=1,
        description="Groups whose members get the permissions of the role.",
    ),
    Column(
        "ServiceAccounts",
        plain(lambda obj: _named(obj, "ServiceAccount")),
        priority=1,
        description="Service accounts that get the permissions of the role.",
    ),
)

ROLE_BINDINGS = kind_of("RoleBinding", BindingStrategy(), _COLUMNS, namespaced=True)
CLUSTER_ROLE_BINDINGS = kind_of(
    "ClusterRoleBinding", ClusterBindingStrategy(), _COLUMNS, namespaced=False
)
