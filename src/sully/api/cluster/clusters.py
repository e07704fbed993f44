"""ManagedCluster: what admission does on a write, and its resource.

Who may accept a cluster or move it between sets depends on permissions, which strategies do not
see: server/admission/clusters.py checks those.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

import msgspec

from sully.api.cluster.addresses import is_https
from sully.api.cluster.agents import VALIDATORS, is_agent, restrict_agent
from sully.api.cluster.columns import AGE, CLUSTER_VERBS, condition, condition_status, printed
from sully.api.cluster.schemas import package, schema
from sully.api.cluster.strategy import (
    MOST_WARNINGS,
    CustomStatusStrategy,
    CustomStrategy,
    denied_badly,
    denied_unread,
)
from sully.api.cluster.taints import times as taints
from sully.api.cluster.taints.history import (
    TAINT_HISTORY,
    read_history,
    with_added,
    with_removed,
    with_sent,
    write_history,
)
from sully.api.cluster.taints.policy_taints import OWNED, read_taint_ids
from sully.api.cluster.types import DEFAULT_SET, GROUP, HEALTH_KEYS, SET_LABEL
from sully.api.core.columns import NAME, plain
from sully.machinery.customresources.structural import fill
from sully.machinery.formats.names import dns_label_problems
from sully.machinery.serialization.decode import DecodeError, decode
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import ResourceType, Version, WriteContext

Obj = dict[str, Any]

MUTATORS = "managedclustermutators"
_ZEROS: dict[str, Obj] = {
    "taints": {"key": "", "effect": ""},
    "managedClusterClientConfigs": {"url": ""},
}
AVAILABLE = "ManagedClusterConditionAvailable"


class ManagedClusterStrategy(CustomStrategy, frozen=True):
    """Writes to clusters."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Read the cluster as OCM's webhook does, before its schema is checked.

        The webhook has types: if it changes a cluster, it also writes zero values of required
        fields that are missing.
        """
        try:
            # In the order in which the API server sends it to the webhook.
            sent = msgspec.to_builtins(obj, order="deterministic")
            decode(sent, schema(self.version, self.kind), [])
        except DecodeError as error:
            raise denied_unread(MUTATORS, str(error)) from None
        spec = obj.get("spec") or {}
        for name, zeros in _ZEROS.items():
            if name in spec and _is_changed(obj):
                spec[name] = [zeros | (item or {}) for item in spec[name]]
        super().default(obj, ctx)

    def notices(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn of times of taints that are not used, and of taints that stay."""
        due = _still_due(obj, old) if ctx.compat.keeps_due_taints else ()
        retained = (
            f"spec.taints: {taint['key']} stays while {_because(taint, old)}" for taint in due
        )
        unused = (
            taints.unused_times(_taints(obj), _taints(old)) if ctx.compat.keeps_taint_times else ()
        )
        return islice(chain(retained, unused), MOST_WARNINGS)

    def admit(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Fill in what every cluster has: whether it is accepted, times of taints, a set."""
        # OCM's webhook always writes this field, and its schema then fills in the rest. A
        # copy of the spec: the request may be retried.
        obj["spec"] = {"hubAcceptsClient": False, **(obj.get("spec") or {})}
        fill(obj, schema(self.version, self.kind))
        if ctx.compat.restricts_cluster_agents:
            restrict_agent(obj, old, ctx)
        if ctx.compat.keeps_due_taints and (due := _still_due(obj, old)):
            obj["spec"]["taints"] = [*_taints(obj), *due]
        if _taints(obj):
            obj["spec"]["taints"] = _stamped(obj, old, ctx)
        if ctx.compat.records_creator:
            _record_taints(obj, old, ctx)
        labels = obj["metadata"].get("labels") or {}
        if not labels.get(SET_LABEL):
            obj["metadata"]["labels"] = {**labels, SET_LABEL: DEFAULT_SET}

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Check the URLs of the cluster."""
        _check_addresses(obj)


def _is_changed(obj: Obj) -> bool:
    """Report whether the webhook has something to add to a new cluster: times, or a set."""
    labels = obj["metadata"].get("labels") or {}
    return bool(_taints(obj)) or not labels.get(SET_LABEL)


def _stamped(obj: Obj, old: Obj | None, ctx: WriteContext) -> list[Obj]:
    if ctx.compat.keeps_taint_times:
        one_clock = ctx.compat.keeps_health_clock
        return taints.stamped(_taints(obj), _taints(old), ctx.now, one_clock=one_clock)
    before = None if old is None else _taints(old)
    stamped, refused = taints.stamped_as_ocm(_taints(obj), before, ctx.now)
    if refused:
        why = f"It is not allowed to set TimeAdded of Taint {quote(','.join(refused))}."
        raise denied_badly(MUTATORS, why)
    return stamped


def _record_taints(obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
    """Keep the history of the taints, with the user who writes."""
    annotations = obj["metadata"].get("annotations") or {}
    ids = [taints.identity(taint) for taint in _taints(obj)]
    entries = read_history((old or {"metadata": {}})["metadata"].get("annotations"))
    if not is_agent(ctx.user, ctx.groups):
        # The end of a taint is not for the agent of the cluster to choose.
        entries = with_sent(entries, read_history(annotations), ids, now=ctx.now, by=ctx.user)
    entries = with_removed(entries, ids, now=ctx.now, by=ctx.user)
    entries = with_added(entries, ids, now=ctx.now, by=ctx.user)
    others = {name: text for name, text in annotations.items() if name != TAINT_HISTORY}
    history = {TAINT_HISTORY: write_history(entries)} if entries else {}
    if others or history:
        obj["metadata"]["annotations"] = {**others, **history}
    else:
        obj["metadata"].pop("annotations", None)


def _taints(obj: Obj | None) -> list[Obj]:
    stored: list[Obj] = ((obj or {}).get("spec") or {}).get("taints") or []
    return stored


def _available(obj: Obj | None) -> str:
    """Return the status of a cluster's availability; empty if it is unknown."""
    return str(condition(obj or {}, AVAILABLE).get("status", ""))


def _still_due(obj: Obj, old: Obj | None) -> list[Obj]:
    ids = read_taint_ids((obj["metadata"].get("annotations") or {}).get(OWNED, ""))
    return taints.still_due(_taints(obj), _taints(old), _available(old), ids)


def _because(taint: Obj, old: Obj | None) -> str:
    if taint["key"] in HEALTH_KEYS:
        return f"{AVAILABLE} is {_available(old) or 'missing'}"
    return f"the annotation {OWNED} names it"


def _check_addresses(obj: Obj) -> None:
    configs = (obj.get("spec") or {}).get("managedClusterClientConfigs") or []
    urls = [config.get("url", "") for config in configs]
    wrong = [f"url {quote(url)} is invalid in client configs" for url in urls if not is_https(url)]
    problems = dns_label_problems(obj["metadata"].get("name", "")) if configs else []
    if problems:
        wrong.insert(0, f"metadata.name format is not correct: {','.join(problems)}")
    if wrong:
        raise denied_badly(VALIDATORS, "\n".join(wrong))


def _first_url(obj: Obj) -> str | None:
    configs = (obj.get("spec") or {}).get("managedClusterClientConfigs") or []
    return configs[0].get("url") if configs else None


CLUSTERS = ResourceType(
    GROUP,
    "ManagedCluster",
    "managedclusters",
    "managedcluster",
    namespaced=False,
    versions=(Version("v1", package("v1"), unconditional_update=False, structural=True),),
    strategy=ManagedClusterStrategy(version="v1", kind="ManagedCluster"),
    status=CustomStatusStrategy(version="v1", kind="ManagedCluster"),
    short_names=("mcl", "mcls"),
    columns=(
        NAME,
        printed(
            "Hub Accepted",
            ".spec.hubAcceptsClient",
            plain(lambda obj: (obj.get("spec") or {}).get("hubAcceptsClient")),
            holds="boolean",
        ),
        printed(
            "Managed Cluster URLs", ".spec.managedClusterClientConfigs[*].url", plain(_first_url)
        ),
        condition_status("Joined", "ManagedClusterJoined"),
        condition_status("Available", "ManagedClusterConditionAvailable"),
        AGE,
    ),
    verbs=CLUSTER_VERBS,
)
