"""All that happened to the fleet, event by event, and what must never happen.

It is fed by watches from the first revision on, so a device that two claims hold for the length of
one write is seen.
"""

from collections import Counter
from dataclasses import dataclass, field

from kills.fleet import Obj, spared
from ledgers import Holdings, PodStory, miscounted, unlike_records


@dataclass(slots=True)
class Ledger:
    """Who held what, who left how."""

    problems: list[str] = field(default_factory=list)
    pods: dict[str, PodStory] = field(default_factory=dict)  # by uid
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
        story = self.pods.setdefault(metadata["uid"], PodStory(metadata["name"]))
        self.problems += story.saw(kind, pod)
        if (story.going or story.marked) and spared(story.node or "node-0"):
            self.problems.append(f"{story.name} on {story.node} was evicted for no reason")

    def bound(self) -> int:
        """Return how many pods have their place."""
        return sum(bool(story.node) for story in self.pods.values())

    def leaving(self) -> dict[str, PodStory]:
        """Return the pods on tainted nodes, by uid."""
        return {uid: story for uid, story in self.pods.items() if not spared(story.node)}

    def check_counts(self, records: list[Obj], rules: list[Obj]) -> None:
        """Compare the lasting counts with what was seen."""
        expected = self.leaving()
        self.problems += unlike_records(expected, records)
        # A rule is named after the pool it taints, and a pool after its node.
        self.problems += miscounted(rules, Counter(story.node for story in expected.values()))
