"""Who may not see what he asks about is with_conditions what it does to his own things."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from explain.test_fleet import condition, decision, placement, with_conditions
from explain.worlds import DRIVER, NAMESPACE, Obj, claim, evicted, pod, snapshot
from sully.client.transport import Key
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS
from sully.explain.explanation import Explanation
from sully.explain.facts.devices.devices import AmbiguousNameError
from sully.explain.questions import QUESTIONS
from sully.explain.reader import Reader

GPU = f"{DRIVER}/n1/gpu-0"
OF_ALL = ("ResourceSlice", "DeviceTaintRule", "ResourceSlicePatch", "Node", "TaintRecord")
FLEET = ("ManagedCluster", "ManagedClusterSet")
KEPT_OFF = {
    "type": DEVICE_DIAGNOSIS,
    "status": "False",
    "message": '{"nodes":1,"requests":[{"claim":"team/d","request":"gpu","wanted":1,"taints":'
    '[{"key":"example.com/fw","effect":"NoSchedule","origin":"DeviceTaintRule/fw","devices":2}]}]}',
}
SATISFIED = condition("PlacementSatisfied", "False", "NotAllDecisionsScheduled", "1 is missing")


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """A question of a user who sees one namespace, and the first sentence of the answer."""

    kind: str
    name: str
    objects: tuple[Obj, ...] = ()
    hidden: tuple[str, ...] = OF_ALL
    contains: str
    cause: str = "NotAllowed"

    def ask(self) -> Explanation | None:
        question = QUESTIONS[self.kind]
        assert question.find_limited is not None
        reader = Reader(snapshot(self.objects, after=70, hidden=self.hidden), everything=False)
        key = Key(NAMESPACE if question.namespaced else "", self.name)
        return question.answer_limited(reader, key, NAMESPACE)


GLIMPSES = {
    "a rule prevents scheduling of his pod": Glimpse(
        kind="rule",
        name="fw",
        objects=(pod("w", status={"conditions": [KEPT_OFF]}),),
        contains="You are not allowed to see rule fw; in namespace team it prevents scheduling"
        " of 1 pod on"
        " devices: team/w.",
    ),
    "a rule evicted his pods": Glimpse(
        kind="rule",
        name="fw",
        objects=(evicted("a"), evicted("b", after=10), evicted("c", "other")),
        contains="You are not allowed to see rule fw; in namespace team it evicted 2 pods, the"
        " last, team/b, at"
        " 2030-01-01T12:00:10Z (60s ago).",
    ),
    "a rule did both": Glimpse(
        kind="rule",
        name="fw",
        objects=(evicted("a"), pod("w", status={"conditions": [KEPT_OFF]})),
        contains="You are not allowed to see rule fw; in namespace team it prevents scheduling"
        " of 1 pod on"
        " devices: team/w and it evicted 1 pod, the last, team/a, at 2030-01-01T12:00:00Z"
        " (70s ago).",
    ),
    "a rule that has nothing to do with him": Glimpse(
        kind="rule",
        name="fw",
        contains="You are not allowed to see rule fw, and nothing that you may see refers to it.",
    ),
    "a device he has": Glimpse(
        kind="device",
        name="n1/gpu-0",
        objects=(claim("c", holds=("n1/gpu-0",), pods=("q",)), pod("q", "c", on="n1")),
        contains="You are not allowed to see device n1/gpu-0; in namespace team it is allocated"
        " to claim team/c for pod"
        " team/q.",
    ),
    "a device he had": Glimpse(
        kind="device",
        name=GPU,
        objects=(evicted("a", after=10),),
        contains=f"You are not allowed to see device {GPU}; in namespace team 1 pod was evicted"
        " from it, the last,"
        " team/a, at 2030-01-01T12:00:10Z (60s ago).",
    ),
    "his placement": Glimpse(
        kind="placement",
        name="p",
        objects=(with_conditions(placement(), SATISFIED), decision("eu-1")),
        hidden=FLEET,
        cause="NotAllDecisionsScheduled",
        contains="Placement team/p has 1 cluster (eu-1) since 2030-01-01T12:00:00Z (70s ago): 1 is"
        " missing.",
    ),
    "a cluster he has": Glimpse(
        kind="cluster",
        name="eu-1",
        objects=(placement(), decision("eu-1")),
        hidden=FLEET,
        contains="You are not allowed to see cluster eu-1; in namespace team 1 placement selects"
        " it: team/p.",
    ),
    "a cluster he has not": Glimpse(
        kind="cluster",
        name="eu-2",
        objects=(placement(), decision("eu-1")),
        hidden=FLEET,
        contains="You are not allowed to see cluster eu-2,"
        " and nothing that you may see refers to it.",
    ),
}


@pytest.mark.parametrize("glimpse", GLIMPSES.values(), ids=GLIMPSES.keys())
def test_a_part_of_the_answer(glimpse: Glimpse) -> None:
    result = glimpse.ask()

    assert result is not None
    assert (result.state, result.cause) == ("NotVisible", glimpse.cause)
    assert result.summary[0] == glimpse.contains
    assert result.remedies[0].startswith("Ask an administrator")


def test_a_name_that_ends_as_two_devices_do_is_none() -> None:
    objects = (claim("a", holds=("n1/gpu-0",)), claim("b", holds=("n2/gpu-0",)))

    with pytest.raises(AmbiguousNameError, match=f'"gpu-0" matches 2 devices: {GPU} and '):
        Glimpse(kind="device", name="gpu-0", objects=objects, contains="").ask()


def test_a_placement_that_is_not_there() -> None:
    assert Glimpse(kind="placement", name="p", hidden=FLEET, contains="").ask() is None


def test_whether_a_device_is_published_is_not_claimed_by_who_cannot_know() -> None:
    objects = (claim("c", holds=("n1/gpu-0",), pods=("q",)), pod("q", "c", on="n1"))
    reader = Reader(snapshot(objects, hidden=OF_ALL), everything=False)
    answer = QUESTIONS["pod"].answer(reader, Key(NAMESPACE, "q"))

    assert answer is not None
    assert answer.details[0].rows == ((GPU, "team/c", "", "", ""),)
