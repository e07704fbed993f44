"""Taints of managed clusters: which clusters are selected, and their taints after the change."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from sully.cli.change.taint_args import TaintArgs
from sully.cli.client.selectors import fits, read_selector
from sully.cli.client.session import Session
from sully.cli.client.text import did_you_mean
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.api.cluster.types import ManagedCluster, Taint
    from sully.domain.planning.taintgrammar import Unwanted, Wanted
    from sully.planning.changes import Put
    from sully.views.snapshot.snapshot import Snapshot


def cluster_changes(session: Session, snapshot: "Snapshot", args: TaintArgs) -> "list[Put]":
    """Return the clusters as they would be with, or without, the taints."""
    from msgspec.structs import replace

    from sully.planning.changes import Put
    from sully.views.fleet_kinds import CLUSTERS

    found: dict[str, ManagedCluster] = {}
    for each in _selected(session, snapshot, args):
        found[each.metadata.name] = each
    return [
        Put(
            CLUSTERS,
            replace(
                each,
                spec=replace(each.spec, taints=_retainted(session, each, args, snapshot.taken)),
            ),
        )
        for each in found.values()
    ]


def gentler(before: "ManagedCluster", after: "ManagedCluster", args: TaintArgs) -> "ManagedCluster":
    """Return a cluster that gets no new decisions, but keeps existing ones for the moment."""
    from msgspec.structs import replace

    # A cluster with a taint of the key has no decisions to keep, or some that must not return.
    keys = {each.key for each in args.sets} - {each.key for each in before.spec.taints}
    soft = [
        replace(each, effect="NoSelectIfNew")
        if each.key in keys and each.effect == "NoSelect"
        else each
        for each in after.spec.taints
    ]
    if tuple(soft) == after.spec.taints:
        return after
    return replace(after, spec=replace(after.spec, taints=tuple(soft)))


def _selected(
    session: Session, snapshot: "Snapshot", args: TaintArgs
) -> "Iterator[ManagedCluster]":
    from sully.views.fleet_kinds import CLUSTERS

    selector = session.options.selector
    if not args.names and not selector:
        raise CommandError(
            "no clusters specified: names, globs, or -l with a label selector", code=2
        )
    known = {each.metadata.name: each for each in snapshot.of(CLUSTERS).values()}
    chosen = _labelled(known, selector)
    for text in args.names or ("*",):
        names = [name for name in sorted(chosen) if fits(text, name)]
        if not names:
            labels = f" with labels {selector}" if selector else ""
            raise CommandError(
                f'managedcluster "{text}"{labels} not found{did_you_mean(text, known)}\n'
                "  list them with 'kubectl get managedclusters'"
            )
        yield from (known[name] for name in names)


def _labelled(known: "dict[str, ManagedCluster]", text: str) -> "dict[str, ManagedCluster]":
    selector = read_selector(text)
    return {
        name: each for name, each in known.items() if selector.matches(each.metadata.labels or {})
    }


def _retainted(
    session: Session, cluster: "ManagedCluster", args: TaintArgs, now: datetime
) -> "tuple[Taint, ...]":
    taints = cluster.spec.taints
    for gone in args.removes:
        taints = _without(cluster, taints, gone)
    for each in args.sets:
        taints = _with(session, cluster, taints, each, now)
    return taints


def _without(
    cluster: "ManagedCluster", taints: "tuple[Taint, ...]", gone: "Unwanted"
) -> "tuple[Taint, ...]":
    kept = tuple(each for each in taints if not gone.means(each.key, each.effect))
    if len(kept) < len(taints):
        return kept
    has = ", ".join(f"{each.key}:{each.effect}" for each in taints) or "none"
    raise CommandError(
        f'managedcluster "{cluster.metadata.name}" has no taint {gone.taint} (it has: {has})'
    )


def _with(
    session: Session,
    cluster: "ManagedCluster",
    taints: "tuple[Taint, ...]",
    wanted: "Wanted",
    now: datetime,
) -> "tuple[Taint, ...]":
    from sully.api.cluster.types import Taint

    same = [each for each in taints if (each.key, each.effect) == (wanted.key, wanted.effect)]
    if same and not session.options.overwrite:
        raise CommandError(
            f'managedcluster "{cluster.metadata.name}" already has a taint'
            f" {wanted.key}:{wanted.effect}\n  use --overwrite to change it"
        )
    fresh = Taint(
        key=wanted.key,
        value=wanted.value,
        effect=wanted.effect,
        time_added=now.replace(microsecond=0),
    )
    return (*(each for each in taints if each not in same), fresh)
