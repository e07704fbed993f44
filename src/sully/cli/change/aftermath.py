"""The end of commands that evict pods: how many run again, how many are Pending, how to undo it."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from sully.cli.client.session import Session
from sully.cli.output.spinner import spinner
from sully.domain.devices.rules import TOGETHER
from sully.machinery.errors import Forbidden
from sully.machinery.formats.plurals import number_of
from sully.views.kinds import CONSUMER_PODS
from sully.views.snapshot.kinds import PODS
from sully.views.snapshot.loading import list_all

if TYPE_CHECKING:
    from sully.client.transport import Key
    from sully.domain.planning.aftermath import Aftermath
    from sully.views.snapshot.snapshot import Snapshot

PATIENCE = timedelta(seconds=15)
"""How long replacements may take to be scheduled and started before the command ends."""
_PENDING = timedelta(seconds=3)
"""How long a replacement has to be unschedulable: claims and devices may be free a moment later."""
_POLL_SECONDS = 0.5


class EvictedPods(msgspec.Struct, frozen=True):
    """The pods to be evicted, and all others before the evictions."""

    controllers: dict[str, int]
    """How many pods each controller loses, by its uid; empty: those without one."""
    known: frozenset[str]
    """The uids of all pods."""
    namespaces: tuple[str, ...]


def evicted_pods(snapshot: "Snapshot", pods: "Collection[Key]") -> EvictedPods:
    """Return what has to be known of pods before they are evicted."""

    controllers: Counter[str] = Counter()
    cache = snapshot.of(CONSUMER_PODS)
    for key in pods:
        pod = cache.get(key)
        owner = pod.metadata.controller() if pod is not None else None
        controllers[owner.uid if owner is not None else ""] += 1
    known = frozenset(pod.metadata.uid for pod in cache.values())
    return EvictedPods(dict(controllers), known, tuple(sorted({key.namespace for key in pods})))


async def await_aftermath(session: Session, evicted: EvictedPods) -> "Aftermath | None":
    """Wait until replacements run or are unschedulable, for a short time; None: no access."""
    from sully.domain.planning.aftermath import aftermath_of

    start = session.clock.now()
    with spinner(lambda: "Waiting for replacements"):
        while True:
            try:
                listed = [
                    pod
                    for namespace in evicted.namespaces
                    for pod in await list_all(session.transport, PODS, namespace)
                ]
            except Forbidden:
                return None
            aftermath = aftermath_of(evicted.controllers, evicted.known, listed)
            waited = session.clock.now() - start
            enough = _PENDING if aftermath.pending else timedelta()
            if waited >= PATIENCE or (aftermath.settled and waited >= enough):
                return aftermath
            await session.clock.sleep(_POLL_SECONDS)


def aftermath_lines(aftermath: "Aftermath | None", undo: str) -> Iterator[str]:
    """Yield what became of evicted pods, the command that explains it, and how to undo it."""
    parts = list(_parts(aftermath)) if aftermath is not None else []
    if parts:
        yield f"{', '.join(parts)}."
    if aftermath is not None and aftermath.pending:
        yield f"  to see why:  sully explain pod {aftermath.pending[0]}"
    yield f"  to undo:     {undo} (evicted pods are not restored)"


def _parts(aftermath: "Aftermath") -> Iterator[str]:
    # Replacements are counted, not pods: a controller may create fewer.
    yield f"{aftermath.running} running again"
    if aftermath.pending:
        yield f"{len(aftermath.pending)} Pending"
    if aftermath.starting:
        yield f"{aftermath.starting} starting"
    if aftermath.missing:
        yield f"{aftermath.missing} not recreated yet"
    if aftermath.unmanaged:
        yield f"{number_of(aftermath.unmanaged, 'pod')} without a controller not recreated"


def delete_command(names: Sequence[str], group: str = "") -> str:
    """Return the command that deletes rules."""
    return f"kubectl delete devicetaintrule {rule_arguments(names, group)}"


def rule_arguments(names: Sequence[str], group: str = "") -> str:
    """Return rules as arguments of a command: their names, or the label that only they have."""

    return f"-l {TOGETHER}={group}" if group else " ".join(names)
