"""All that happened to the fleet, event by event, and what must never happen.

It is fed by watches from the first revision on, so a device that two claims hold for the length of
one write is seen.
"""

from collections import Counter
from dataclasses import dataclass, field

from kills.fleet import Obj, spared
from ledgers import Holdings, PodHistory, count_problems, record_problems


@dataclass(slots=True)
class Ledger:
    """Which claims held which devices, and how pods were evicted."""

    problems: list[str] = field(default_factory=list)
    pods: dict[str, PodHistory] = field(default_factory=dict)  # by uid
    events: int = 0
    _holdings: Holdings = field(default_factory=Holdings)

    @property
    def claims(self) -> int:
        """Return how many claims there are."""
        return len(self._holdings.claims)

    @property
    def held(self) -> int:
        """Return how many devices are in use."""
        return len(self._holdings.held)

    def saw_claim(self, kind: str, claim: Obj) -> None:
        """Take one event about a claim."""
        self.events += 1
        self.problems += self._holdings.saw(kind, claim)

    def saw_pod(self, kind: str, pod: Obj) -> None:
        """Take one event about a pod."""
        self.events += 1
        metadata = pod["metadata"]
        history = self.pods.setdefault(metadata["uid"], PodHistory(metadata["name"]))
        self.problems += history.saw(kind, pod)
        if (history.terminating or history.marked) and spared(history.node or "node-0"):
            self.problems.append(f"{history.name} on {history.node} was evicted for no reason")

    def bound(self) -> int:
        """Return how many pods are bound."""
        return sum(bool(history.node) for history in self.pods.values())

    def must_be_evicted(self) -> dict[str, PodHistory]:
        """Return the pods on tainted nodes, by uid."""
        return {uid: history for uid, history in self.pods.items() if not spared(history.node)}

    def check_counts(self, records: list[Obj], rules: list[Obj]) -> None:
        """Compare records and counts of rules with what was seen."""
        expected = self.must_be_evicted()
        self.problems += record_problems(expected, records)
        # A rule is named after the pool it taints, and a pool after its node.
        self.problems += count_problems(
            rules, Counter(history.node for history in expected.values())
        )
