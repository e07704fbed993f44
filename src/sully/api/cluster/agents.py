"""What the agent of a managed cluster may not change of its own ManagedCluster.

An agent may update its cluster, to report how it is reached. What decides where work is placed
belongs to the hub: a compromised agent must not declare its cluster healthy, revert what
administrators and policies decided, or keep its permissions when the cluster is deleted.
"""

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.strategy import denied
from sully.api.cluster.taints import times as taints
from sully.api.cluster.taints.policy_states import STATES
from sully.api.cluster.taints.policy_taints import OWNED
from sully.api.cluster.types import HEALTH_KEYS
from sully.api.resource.annotations import CLEARED_AT
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import WriteContext

Obj = dict[str, Any]

VALIDATORS = "managedclustervalidators"
AGENTS = "system:open-cluster-management:"
"""The prefix of the names of agents and of their groups."""
_OF_POLICIES = (OWNED, STATES, CLEARED_AT)


def is_agent(user: str, groups: Iterable[str]) -> bool:
    """Report whether a user is the agent of a managed cluster."""
    return any(name.startswith(AGENTS) for name in (user, *groups))


def restrict_agent(obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
    """Refuse what an agent may not change; the annotations of policies stay as stored."""
    if not is_agent(ctx.user, ctx.groups):
        return
    why = _problem(obj, old)
    if why:
        name, user = obj["metadata"].get("name", ""), quote(ctx.user)
        raise denied(VALIDATORS, "managedclusters", name, f"user {user} cannot {why}")
    _keep_policy_annotations(obj, old)


def _problem(obj: Obj, old: Obj | None) -> str:
    before, after = _identities(old), _identities(obj)
    if _health(before) != _health(after):
        return f"change the taints {' and '.join(HEALTH_KEYS)}, the hub sets them"
    removed = sorted({key for key, _, _ in before - after})
    if removed:
        return f"remove the taint {removed[0]}, an administrator of the hub can"
    if old is not None and _lease_seconds(old) != _lease_seconds(obj):
        return "change spec.leaseDurationSeconds, an administrator of the hub can"
    missing = _finalizers(old) - _finalizers(obj)
    if missing:
        return f"remove the finalizer {min(missing)}, the hub sets it"
    added = _finalizers(obj) - _finalizers(old)
    if added:
        # Its cluster could never be deleted.
        return f"add the finalizer {min(added)}, the hub sets it"
    if _owners(old) != _owners(obj):
        # The garbage collector would delete a cluster whose owner is gone.
        return "change metadata.ownerReferences, an administrator of the hub can"
    changed = sorted(_labels(old).items() ^ _labels(obj).items()) if old is not None else []
    # Policies and placements select clusters by their labels.
    return f"change the label {changed[0][0]}, an administrator of the hub can" if changed else ""


def _identities(obj: Obj | None) -> set[tuple[str, str, str]]:
    return {taints.identity(t) for t in ((obj or {}).get("spec") or {}).get("taints") or []}


def _health(identities: Iterable[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    return {identity for identity in identities if identity[0] in HEALTH_KEYS}


def _lease_seconds(obj: Obj) -> int | None:
    """Return after how long a cluster whose lease is not renewed counts as unreachable."""
    seconds: int | None = (obj.get("spec") or {}).get("leaseDurationSeconds")
    return seconds


def _finalizers(obj: Obj | None) -> set[str]:
    return set((obj or {"metadata": {}})["metadata"].get("finalizers") or ())


def _owners(obj: Obj | None) -> list[Obj]:
    owners: list[Obj] = (obj or {"metadata": {}})["metadata"].get("ownerReferences") or []
    return owners


def _labels(obj: Obj | None) -> dict[str, str]:
    labels: dict[str, str] = (obj or {"metadata": {}})["metadata"].get("labels") or {}
    return labels


def _keep_policy_annotations(obj: Obj, old: Obj | None) -> None:
    before = (old or {"metadata": {}})["metadata"].get("annotations") or {}
    stored = {key: before[key] for key in _OF_POLICIES if key in before}
    sent = obj["metadata"].get("annotations") or {}
    if {key: sent[key] for key in _OF_POLICIES if key in sent} == stored:
        return
    others = {key: text for key, text in sent.items() if key not in _OF_POLICIES}
    obj["metadata"]["annotations"] = {**others, **stored}
