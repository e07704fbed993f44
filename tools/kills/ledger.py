"""All that happened to the fleet, event by event, and what must never happen.

It is fed by watches from the first revision on, so a device that two claims hold for the length of
one write is seen.
"""

from collections import Counter
from dataclasses import dataclass, field

from kills.fleet import Obj, spared

Device = tuple[str, str, str]
MARK = "DisruptionTarget"


@dataclass(slots=True)
class PodStory:
    """What is known of one pod."""

    name: str
    node: str = ""
    marked: bool = False
    going: bool = False
    gone: bool = False


@dataclass(slots=True)
class Ledger:
    """Who held what, who left how."""

    problems: list[str] = field(default_factory=list)
    pods: dict[str, PodStory] = field(default_factory=dict)  # by uid
    events: int = 0
    _held: dict[Device, str] = field(default_factory=dict)
    _claims: dict[str, frozenset[Device]] = field(default_factory=dict)  # by uid

    @property
    def claims(self) -> int:
        """Return how many claims there are."""
        return len(self._claims)

    @property
    def held(self) -> int:
        """Return how many devices are in use."""
        return len(self._held)

    def saw_claim(self, kind: str, claim: Obj) -> None:
        """Take one event about a claim."""
        self.events += 1
        uid = claim["metadata"]["uid"]
        before = self._claims.pop(uid, frozenset())
        now = frozenset() if kind == "DELETED" else devices(claim)
        if kind != "DELETED":
            self._claims[uid] = now
        for device in before - now:
            if self._held.get(device) == uid:
                del self._held[device]
        for device in now - before:
            other = self._held.setdefault(device, uid)
            if other != uid:
                self.problems.append(f"{'/'.join(device)} is held by {uid} and by {other}")

    def saw_pod(self, kind: str, pod: Obj) -> None:
        """Take one event about a pod."""
        self.events += 1
        metadata = pod["metadata"]
        story = self.pods.setdefault(metadata["uid"], PodStory(metadata["name"]))
        node = pod["spec"].get("nodeName", "")
        if story.node and node != story.node:
            self.problems.append(f"{story.name} was bound to {story.node} and to {node}")
        story.node = node
        story.marked = story.marked or _marked(pod)
        story.going = story.going or "deletionTimestamp" in metadata
        story.gone = kind == "DELETED"
        if story.gone and not story.marked:
            self.problems.append(f"{story.name} is lost: it went without having been evicted")
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
        recorded = Counter(record["spec"]["pod"]["uid"] for record in records)
        for uid in expected.keys() - recorded.keys():
            self.problems.append(f"no record tells that {expected[uid].name} was evicted")
        for uid in recorded.keys() - expected.keys():
            self.problems.append(f"a record tells of {uid}, which was not evicted")
        for uid, number in recorded.items():
            if number > 1:
                self.problems.append(f"{number} records tell of {uid}")
        by_pool = Counter(story.node for story in expected.values())
        for rule in rules:
            self._check_rule(rule, by_pool[rule["metadata"]["name"]])

    def _check_rule(self, rule: Obj, number: int) -> None:
        conditions = (rule.get("status") or {}).get("conditions") or ()
        said = {each["type"]: each.get("message", "") for each in conditions}
        words = said.get("sully.dev/Evicted", "0 pods evicted.").split()
        if int(words[0]) != number:
            name = rule["metadata"]["name"]
            self.problems.append(f"rule {name} counts {words[0]} pods, {number} were evicted")


def devices(claim: Obj) -> frozenset[Device]:
    """Return the devices that a claim has for itself."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return frozenset(
        (each["driver"], each["pool"], each["device"])
        for each in results
        if not each.get("adminAccess")
    )


def _marked(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == MARK and each["status"] == "True" for each in conditions)
