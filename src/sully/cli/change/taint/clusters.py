"""Taints of managed clusters: which clusters are selected, and their taints after the change."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from sully.api.cluster.types import Taint
from sully.cli.change.taint.args import TaintArgs
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.text import did_you_mean
from sully.cli.selection.globs import glob_matches
from sully.cli.selection.selectors import read_selector
from sully.machinery.formats.timestamps import format_time
from sully.planning.dryrun.changes import Put
from sully.views.fleet_kinds import CLUSTERS

if TYPE_CHECKING:
    from sully.api.cluster.taints.history import TaintEntry
    from sully.api.cluster.types import ManagedCluster
    from sully.domain.planning.rules.taint_grammar import TaintToAdd, TaintToRemove
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]


def cluster_changes(session: Session, snapshot: "Snapshot", args: TaintArgs) -> "list[Put]":
    """Return the clusters as they would be with, or without, the taints."""
    from msgspec.structs import replace

    selected = {cluster.metadata.name: cluster for cluster in _selected(session, snapshot, args)}
    clusters = _tainted(list(selected.values()), args)
    changes = []
    for cluster in clusters:
        taints = _new_taints(session, cluster, args, snapshot.taken)
        spec = replace(cluster.spec, taints=taints)
        changes.append(Put(CLUSTERS, replace(cluster, spec=spec)))
    return changes


def with_history(session: Session, change: "Put", args: TaintArgs, user: str) -> "Put":
    """Record in the annotation of a cluster who sets and removes taints, why and until when."""
    from msgspec.structs import replace

    from sully.api.cluster.taints.history import (
        TAINT_HISTORY,
        read_history,
        with_removed,
        write_history,
    )
    from sully.domain.clusters.policies import taint_id

    cluster, now = change.obj, session.clock.now()
    before = read_history(cluster.metadata.annotations)
    ids = [taint_id(taint) for taint in cluster.spec.taints]
    entries = with_removed(before, ids, now=now, by=user)
    added = [_entry(session, before, taint, now=now, user=user) for taint in args.sets]
    if len(entries) + len(added) == len(before):
        return change
    history = {TAINT_HISTORY: write_history((*entries, *added))}
    annotations = {**cluster.metadata.annotations, **history}
    metadata = replace(cluster.metadata, annotations=annotations)
    return Put(change.kind, replace(cluster, metadata=metadata))


def _entry(
    session: Session,
    before: "Sequence[TaintEntry]",
    added: "TaintToAdd",
    *,
    now: datetime,
    user: str,
) -> "TaintEntry":
    """Return the entry of a taint; what is not set stays as it was, as for rules."""
    from sully.api.cluster.taints.history import TaintEntry, set_by

    options = session.options
    same = [entry for entry in before if (entry.key, entry.effect) == (added.key, added.effect)]
    old = set_by(same, same[-1].id) if same else None
    ends = format_time(now + timedelta(seconds=options.lasts)) if options.lasts else ""
    return TaintEntry(
        time=now.replace(microsecond=0),
        event="tainted",
        key=added.key,
        value=added.value,
        effect=added.effect,
        by=user,
        reason=options.reason or (old.reason if old is not None else ""),
        expires_at=ends or (old.expires_at if old is not None else ""),
    )


def with_softer_taints(
    before: "ManagedCluster", after: "ManagedCluster", args: TaintArgs
) -> "ManagedCluster":
    """Return a cluster that gets no new decisions, but keeps existing ones for the moment."""
    from msgspec.structs import replace

    # A cluster with a taint of the key has no decisions to keep, or some that must not return.
    keys = {taint.key for taint in args.sets} - {taint.key for taint in before.spec.taints}
    soft = [
        replace(taint, effect="NoSelectIfNew")
        if taint.key in keys and taint.effect == "NoSelect"
        else taint
        for taint in after.spec.taints
    ]
    if tuple(soft) == after.spec.taints:
        return after
    return replace(after, spec=replace(after.spec, taints=tuple(soft)))


def _selected(
    session: Session, snapshot: "Snapshot", args: TaintArgs
) -> "Iterator[ManagedCluster]":

    selector = session.options.selector
    if not args.names and not selector:
        raise CommandError(
            "no clusters specified: names, globs, or -l with a label selector", code=2
        )
    clusters = {cluster.metadata.name: cluster for cluster in snapshot.of(CLUSTERS).values()}
    labels_match = read_selector(selector).matches
    labelled = [name for name in clusters if labels_match(clusters[name].metadata.labels or {})]
    for text in args.names or ("*",):
        names = [name for name in sorted(labelled) if glob_matches(text, name)]
        if not names:
            labels = f" with labels {selector}" if selector else ""
            raise CommandError(
                f'managedcluster "{text}"{labels} not found{did_you_mean(text, clusters)}\n'
                "  list them with 'kubectl get managedclusters'"
            )
        yield from (clusters[name] for name in names)


def _tainted(clusters: "list[ManagedCluster]", args: TaintArgs) -> "list[ManagedCluster]":
    """Return the clusters that have what is removed; an error if there is a taint that none has."""
    if args.sets:
        return clusters
    for removed in args.removes:
        if not any(_has(cluster.spec.taints, removed) for cluster in clusters):
            if len(clusters) == 1:
                _refuse_missing(clusters[0], removed)
            raise CommandError(f"none of the {len(clusters)} clusters has taint {removed.taint}")
    return [
        cluster
        for cluster in clusters
        if any(_has(cluster.spec.taints, removed) for removed in args.removes)
    ]


def _has(taints: "Sequence[Taint]", removed: "TaintToRemove") -> bool:
    return any(removed.matches(taint.key, taint.effect) for taint in taints)


def retained_taints(written: Obj, args: TaintArgs) -> list[str]:
    """Return the taints that were removed and are there: those of the hub, or of a policy."""
    return [
        f"{taint['key']}:{taint['effect']}"
        for taint in written["spec"].get("taints") or ()
        if any(removed.matches(taint["key"], taint["effect"]) for removed in args.removes)
    ]


def refuse_retained_taints(written: Sequence[Obj], args: TaintArgs) -> None:
    """Raise if the server kept taints that were removed."""
    retained = {cluster["metadata"]["name"]: retained_taints(cluster, args) for cluster in written}
    names = [name for name, taints in retained.items() if taints]
    if names:
        lines = "\n".join(f"  {name}: {', '.join(retained[name])}" for name in names)
        raise CommandError(
            "the server keeps taints that the hub or a clustertaintpolicy manages\n"
            f"{lines}\n  to see why:  sully explain cluster {names[0]}"
        )


def _new_taints(
    session: Session, cluster: "ManagedCluster", args: TaintArgs, now: datetime
) -> "tuple[Taint, ...]":
    taints = cluster.spec.taints
    for removed in args.removes:
        if args.sets and not _has(taints, removed):
            _refuse_missing(cluster, removed)
        taints = tuple(one for one in taints if not removed.matches(one.key, one.effect))
    for added in args.sets:
        taints = _with(session, cluster, taints, added, now)
    return taints


def _refuse_missing(cluster: "ManagedCluster", removed: "TaintToRemove") -> NoReturn:
    existing = ", ".join(f"{taint.key}:{taint.effect}" for taint in cluster.spec.taints) or "none"
    raise CommandError(
        f'managedcluster "{cluster.metadata.name}" has no taint {removed.taint}'
        f" (it has: {existing})"
    )


def _with(
    session: Session,
    cluster: "ManagedCluster",
    taints: "tuple[Taint, ...]",
    added: "TaintToAdd",
    now: datetime,
) -> "tuple[Taint, ...]":

    same = [taint for taint in taints if (taint.key, taint.effect) == (added.key, added.effect)]
    if same and not session.options.overwrite:
        raise CommandError(
            f'managedcluster "{cluster.metadata.name}" already has a taint'
            f" {added.key}:{added.effect}\n  use --overwrite to change it"
        )
    new = Taint(
        key=added.key,
        value=added.value,
        effect=added.effect,
        time_added=now.replace(microsecond=0),
    )
    return (*(taint for taint in taints if taint not in same), new)
