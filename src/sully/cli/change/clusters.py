"""Taints of managed clusters: which clusters are meant, and how they would be with the change."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from sully.cli.change.words import Words
from sully.cli.client.calling import CommandError, Session
from sully.cli.client.labels import read_selector
from sully.cli.client.patterns import fits
from sully.cli.parsing import meant

if TYPE_CHECKING:
    from sully.api.cluster.types import ManagedCluster, Taint
    from sully.domain.planning.taintgrammar import Unwanted, Wanted
    from sully.planning.changes import Put
    from sully.views.snapshot.snapshot import Snapshot


def cluster_changes(session: Session, snapshot: "Snapshot", words: Words) -> "list[Put]":
    """Return the clusters as they would be with, or without, the taints."""
    from msgspec.structs import replace

    from sully.planning.changes import Put
    from sully.views.fleet_kinds import CLUSTERS

    found: dict[str, ManagedCluster] = {}
    for each in _meant_clusters(session, snapshot, words):
        found[each.metadata.name] = each
    return [
        Put(
            CLUSTERS,
            replace(
                each,
                spec=replace(each.spec, taints=_retainted(session, each, words, snapshot.taken)),
            ),
        )
        for each in found.values()
    ]


def gentler(before: "ManagedCluster", after: "ManagedCluster", words: Words) -> "ManagedCluster":
    """Return a cluster that gets no new decisions and keeps those that it is to lose."""
    from msgspec.structs import replace

    # Who has a taint of the key already has nothing to gain, or decisions that must not come back.
    keys = {each.key for each in words.sets} - {each.key for each in before.spec.taints}
    soft = [
        replace(each, effect="NoSelectIfNew")
        if each.key in keys and each.effect == "NoSelect"
        else each
        for each in after.spec.taints
    ]
    if tuple(soft) == after.spec.taints:
        return after
    return replace(after, spec=replace(after.spec, taints=tuple(soft)))


def _meant_clusters(
    session: Session, snapshot: "Snapshot", words: Words
) -> "Iterator[ManagedCluster]":
    from sully.views.fleet_kinds import CLUSTERS

    selector = session.options.selector
    if not words.names and not selector:
        raise CommandError("say which clusters: names, globs, or -l with their labels", code=2)
    known = {each.metadata.name: each for each in snapshot.of(CLUSTERS).values()}
    chosen = _labelled(known, selector)
    for text in words.names or ("*",):
        names = [name for name in sorted(chosen) if fits(text, name)]
        if not names:
            labels = f" with {selector}" if selector else ""
            raise CommandError(
                f'there is no ManagedCluster "{text}"{labels}{meant(text, known)}\n'
                "  'kubectl get managedclusters' lists them"
            )
        yield from (known[name] for name in names)


def _labelled(known: "dict[str, ManagedCluster]", text: str) -> "dict[str, ManagedCluster]":
    selector = read_selector(text)
    return {
        name: each for name, each in known.items() if selector.matches(each.metadata.labels or {})
    }


def _retainted(
    session: Session, cluster: "ManagedCluster", words: Words, now: datetime
) -> "tuple[Taint, ...]":
    taints = cluster.spec.taints
    for gone in words.lifts:
        taints = _without(cluster, taints, gone)
    for each in words.sets:
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
        f"managedcluster {cluster.metadata.name} has no taint {gone.taint}\n  it has: {has}"
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
            f"managedcluster {cluster.metadata.name} has a taint {wanted.key}:{wanted.effect}"
            " already\n  --overwrite changes it"
        )
    fresh = Taint(
        key=wanted.key,
        value=wanted.value,
        effect=wanted.effect,
        time_added=now.replace(microsecond=0),
    )
    return (*(each for each in taints if each not in same), fresh)
