"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has and had.

A revision holds a patch that restores its template; `kubectl rollout undo` applies it. Going back
to an old template makes its revision the newest again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from sully.domain.workloads.revisions import template_hash
from sully.domain.workloads.workloads import Workload

HASH_LABEL: Final = "controller-revision-hash"
"""The label of pods that names the revision that they were created from."""


class ControllerRevision(Workload, frozen=True, kw_only=True):
    """A template and its number."""

    data: dict[str, Any] | None = None
    revision: int = 0


def patch_of(template: dict[str, Any]) -> dict[str, Any]:
    """Return the patch that restores a template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> dict[str, Any]:
    """Return the template of a revision."""
    spec = (revision.data or {}).get("spec") or {}
    return {name: value for name, value in (spec.get("template") or {}).items() if name[0] != "$"}


def hash_of(template: dict[str, Any], collisions: int | None) -> str:
    """Return the part of a revision's name that distinguishes it from the others of its owner."""
    return template_hash(patch_of(template), collisions)


def by_number(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Return revisions, the oldest first."""
    return sorted(revisions, key=lambda revision: (revision.revision, revision.name))


def matching(
    revisions: Iterable[ControllerRevision], template: dict[str, Any]
) -> ControllerRevision | None:
    """Return the newest revision of a template."""
    equal = [revision for revision in revisions if revision.data == patch_of(template)]
    return by_number(equal)[-1] if equal else None


def next_number(revisions: Iterable[ControllerRevision]) -> int:
    """Return the number that makes a revision the newest."""
    return max((revision.revision for revision in revisions), default=0) + 1


def surplus(
    revisions: Sequence[ControllerRevision], used: Collection[str], limit: int | None
) -> list[ControllerRevision]:
    """Return the revisions beyond the limit, of those that no pod was created from."""
    idle = [revision for revision in by_number(revisions) if revision.name not in used]
    return idle[: max(len(idle) - limit, 0)] if limit is not None else []
