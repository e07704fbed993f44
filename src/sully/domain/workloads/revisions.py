"""Which ReplicaSet of a Deployment is the present one, and what its annotations record.

A Deployment has one ReplicaSet for each template it ever had, up to a limit. Going back to an old
template makes its ReplicaSet the present one again, with a new number; the numbers it had before
stay in its history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sully.domain.workloads.workloads import NEVER, Deployment, ReplicaSet, template_labels
from sully.machinery.formats.integers import parse_int
from sully.machinery.serialization.codec import to_json

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
ROLLBACK = "deprecated.deployment.rollback.to"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OWN = frozenset({REVISION, HISTORY, DESIRED, MAXIMUM, ROLLBACK, LAST_APPLIED})
"""Annotations that are about one object and not handed on to another."""

_HISTORY_LENGTH = 2000
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def template_hash(template: Mapping[str, Any], collisions: int | None) -> str:
    """Return a short name for a template; after a collision, another one.

    Only sameness matters: the name does not reveal the template.
    """
    data = to_json(sorted_by_name(template)) + (
        b"" if collisions is None else str(collisions).encode()
    )
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def sorted_by_name(value: Any) -> Any:
    """Return a value with the fields of all its objects in the order of their names."""
    if isinstance(value, Mapping):
        return {key: sorted_by_name(value[key]) for key in sorted(value)}
    return [sorted_by_name(item) for item in value] if isinstance(value, list) else value


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Report whether two templates make the same pods, apart from the hash among their labels."""
    return _plain(one) == _plain(other)


def _plain(template: Mapping[str, Any]) -> dict[str, Any]:
    labels = template_labels(dict(template))
    remaining = {key: value for key, value in labels.items() if key != HASH_LABEL}
    metadata = {
        key: value
        for key, value in (template.get("metadata") or {}).items()
        if value not in (None, {}, [])
    }
    return {**template, "metadata": {**metadata, "labels": remaining}}


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return ReplicaSets, the oldest first."""
    return sorted(
        sets,
        key=lambda replica_set: (
            replica_set.metadata.creation_timestamp or _LONG_AGO,
            replica_set.name,
        ),
    )


def present(deployment: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """Return the ReplicaSet of the present template; of several, the oldest."""
    template = deployment.spec.template
    return next(
        (
            replica_set
            for replica_set in by_age(sets)
            if same_template(replica_set.spec.template, template)
        ),
        None,
    )


def revision(annotations: Mapping[str, str]) -> int:
    """Return the number in an annotation; 0 if there is none, or none of 64 bits."""
    return parse_int(annotations.get(REVISION, "")) or 0


def next_revision(old: Iterable[ReplicaSet]) -> int:
    """Return the number that makes a ReplicaSet the newest."""
    return max((revision(replica_set.metadata.annotations) for replica_set in old), default=0) + 1


def annotations_for(
    deployment: Deployment, current: Mapping[str, str], number: int
) -> dict[str, str]:
    """Return the annotations of the present ReplicaSet, given those that it has."""
    handed = {k: v for k, v in deployment.metadata.annotations.items() if k not in OWN}
    changed = {**current, **handed}
    before = current.get(REVISION)
    # Its number may be higher already, when newer ones were deleted since.
    if revision(current) < number:
        changed[REVISION] = str(number)
        if before:
            changed[HISTORY] = _history(current.get(HISTORY, ""), before)
    return changed


def _history(text: str, number: str) -> str:
    numbers = [part for part in text.split(",") if part]
    while numbers and len(",".join([*numbers, number])) > _HISTORY_LENGTH:
        del numbers[0]
    return ",".join([*numbers, number])


def size_annotations(deployment: Deployment, surge: int) -> dict[str, str]:
    """Return what a ReplicaSet recorded of the size of its Deployment when it was scaled."""
    desired = deployment.spec.replicas
    return {DESIRED: str(desired), MAXIMUM: str(desired + surge)}


def noted(owner: ReplicaSet, annotation: str) -> int | None:
    """Return a number that was noted on a ReplicaSet, or None."""
    text = owner.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def forgotten(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return the old ReplicaSets beyond the limit, of those that are really idle."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == NEVER:
        return []
    alive = [replica_set for replica_set in old if not replica_set.is_terminating]
    alive.sort(
        key=lambda replica_set: (revision(replica_set.metadata.annotations), *_age(replica_set))
    )
    return [
        replica_set for replica_set in alive[: max(len(alive) - limit, 0)] if _idle(replica_set)
    ]


def _age(owner: ReplicaSet) -> tuple[datetime, str]:
    return owner.metadata.creation_timestamp or _LONG_AGO, owner.name


def _idle(owner: ReplicaSet) -> bool:
    observed = owner.status.observed_generation >= owner.metadata.generation
    return owner.spec.replicas == 0 and owner.status.replicas == 0 and observed
