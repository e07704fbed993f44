"""Recognizes an eviction loop that runs: many pods of one owner evicted within minutes.

All that a server shows of it are events about pods that are gone, records where Sully keeps them,
and the pods that exist now. An owner whose pods were evicted more than twice each within a few
minutes, and one of them just now, is in a loop: evicting all pods once is not one, nor is
evicting their replacements once more because of another rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from sully.api.sully.types import EvictionRecord
from sully.domain.claims.pods import Pod
from sully.domain.eviction.pod_events import EvictionEvent, EvictionStep

WINDOW: Final = timedelta(minutes=5)
"""Earlier evictions do not count."""
RECENT: Final = timedelta(seconds=15)
"""A loop without an eviction for so long, and for a few rounds, has ended."""
_ROUNDS: Final = 3
_TIMES_EACH: Final = 2

Owner = tuple[str, str]
"""Namespace, and kind and name of a controller."""


class PodEviction(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was evicted; of an Event its owner is not known."""

    namespace: str
    name: str
    uid: str
    time: datetime
    owner: str = ""
    rules: frozenset[str] = frozenset()
    """The uids of the rules that evicted it, where they are recorded."""


class RunningLoop(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one owner that are evicted again and again."""

    namespace: str
    owner: str
    """Kind and name of their controller."""
    evicted_uids: frozenset[str]
    """Its pods that were evicted since `first`."""
    first: datetime
    last: datetime
    pods: tuple[str, ...]
    """The names of its pods that exist now, also of those that are terminating."""
    rules: frozenset[str] = frozenset()

    @property
    def evicted(self) -> int:
        """Return how many of its pods were evicted."""
        return len(self.evicted_uids)


def evictions_in(
    events: Iterable[EvictionEvent], records: Iterable[EvictionRecord]
) -> Iterator[PodEviction]:
    """Yield the evictions that events and records are about; the same pod may be in both."""
    for record in records:
        pod = record.spec.pod
        yield PodEviction(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            time=record.spec.evicted_time,
            owner=f"{pod.owner.kind}/{pod.owner.name}" if pod.owner is not None else "",
            rules=frozenset(x.uid for x in record.spec.causes if x.kind == "DeviceTaintRule"),
        )
    for event in events:
        about, time = event.involved_object, event.time
        if about.kind == "Pod" and event.step is EvictionStep.STARTED and time is not None:
            yield PodEviction(namespace=about.namespace, name=about.name, uid=about.uid, time=time)


def running_loops(
    evictions: Iterable[PodEviction], pods: Iterable[Pod], now: datetime
) -> tuple[RunningLoop, ...]:
    """Return the loops that run, by namespace and owner."""
    owners = _Owners(pods)
    groups: dict[Owner, dict[str, PodEviction]] = {}
    for eviction in evictions:
        if now - eviction.time > WINDOW:
            continue
        owner = owners.find(eviction)
        if owner is not None:
            # Records come first, and know more than events.
            groups.setdefault(owner, {}).setdefault(eviction.uid, eviction)
    loops = []
    for owner in sorted(groups):
        loop = _loop(owner, list(groups[owner].values()), owners.pods[owner], now)
        loops += [loop] if loop is not None else []
    return tuple(loops)


def _loop(
    owner: Owner, evictions: list[PodEviction], pods: list[Pod], now: datetime
) -> RunningLoop | None:
    replicas = max(1, sum(not pod.is_terminating for pod in pods))
    times = [eviction.time for eviction in evictions]
    if len(evictions) <= _TIMES_EACH * replicas:
        return None
    one_round = (max(times) - min(times)) * replicas / len(evictions)
    if now - max(times) > max(RECENT, _ROUNDS * one_round):
        return None
    return RunningLoop(
        namespace=owner[0],
        owner=owner[1],
        evicted_uids=frozenset(eviction.uid for eviction in evictions),
        first=min(times),
        last=max(times),
        pods=tuple(sorted(pod.metadata.name for pod in pods)),
        rules=frozenset(uid for eviction in evictions for uid in eviction.rules),
    )


class _Owners:
    """Finds the owners of pods that are gone, by the pods that exist."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.pods: dict[Owner, list[Pod]] = {}
        self._by_name: dict[tuple[str, str], Owner] = {}
        """By the name of a pod, which those of a StatefulSet share with earlier ones, or by that of
        a controller, which generated names begin with."""
        for pod in pods:
            controller, namespace = pod.metadata.controller(), pod.metadata.namespace
            if controller is None or pod.is_terminal:
                continue
            owner = namespace, f"{controller.kind}/{controller.name}"
            self.pods.setdefault(owner, []).append(pod)
            self._by_name[namespace, controller.name] = owner
            self._by_name[namespace, pod.metadata.name] = owner

    def find(self, eviction: PodEviction) -> Owner | None:
        """Return the owner of an evicted pod, if it has others."""
        if eviction.owner:
            owner = eviction.namespace, eviction.owner
            return owner if owner in self.pods else None
        namespace, name = eviction.namespace, eviction.name
        exact = self._by_name.get((namespace, name))
        return exact or self._by_name.get((namespace, name.rpartition("-")[0]))
