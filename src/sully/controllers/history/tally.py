"""How many pods left because of a rule: counted as records come, lasting as records go.

Records are forgotten after a while, and a namespace takes its records with it; the count does not
fall for that. It falls only when a record was withdrawn, because the pod stays after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.domain.claims.pods import still_runs
from sully.domain.eviction.past import PastEviction
from sully.domain.eviction.records import taint_record_name
from sully.domain.scheduling.objects import Pod


@dataclass(slots=True)
class _Count:
    there: int = 0
    """Records that exist."""
    gone: int = 0
    """Records that existed, as far as is known."""
    resumed: bool = False
    """Whether what was counted before the start is in `gone`."""


class Tally:
    """Counts evictions by the name of the record of the rule that wanted them."""

    def __init__(self, evictions: Informer[PastEviction], pods: Informer[Pod]) -> None:
        self._pods = pods
        self._counts: dict[str, _Count] = {}
        self._queues: list[Callable[[str], None]] = []
        evictions.on_change(self._changed)

    def count(self, record: str, *, at_least: int, told: int = 0) -> int:
        """Return how many pods left; what was counted before the start is taken as true.

        What an evictor tells that writes no records counts from then on, also when it forgets.
        """
        found = self._counts.setdefault(record, _Count())
        if not found.resumed:
            found.resumed = True
            told = max(told, at_least)
        found.gone += max(0, told - found.there - found.gone)
        return found.there + found.gone

    def forget(self, record: str) -> None:
        """Let go of the count of a rule that nobody remembers."""
        self._counts.pop(record, None)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[str], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of rules whose count changed to a queue."""

        def handle(record: str) -> None:
            for key in to_keys(record):
                add(key)

        self._queues.append(handle)
        for record in self._counts:
            handle(record)
        return lambda: self._queues.remove(handle)

    def _changed(self, old: PastEviction | None, new: PastEviction | None) -> None:
        if old is not None and new is not None:
            # What happened does not change.
            return
        past = new or old
        if past is None:
            return
        for record in _records(past):
            found = self._counts.setdefault(record, _Count())
            found.there += 1 if new is not None else -1
            if new is None and not self._stays(past):
                found.gone += 1
            for tell in self._queues:
                tell(record)

    def _stays(self, past: PastEviction) -> bool:
        """Report whether the pod of a record that was deleted is still there, and is to stay."""
        pod = self._pods.get(Key(past.metadata.namespace, past.spec.pod.name))
        return still_runs(pod, past.metadata.name)


def _records(past: PastEviction) -> set[str]:
    return {taint_record_name(rule.name, rule.uid) for rule in past.rules()}
