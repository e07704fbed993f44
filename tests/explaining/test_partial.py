"""Who may not see what he asks about is told what it does to his own things."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from explaining.test_fleet import condition, decision, told, wish
from explaining.worlds import DRIVER, NAMESPACE, Obj, claim, evicted, pod, snapshot
from sully.client.transport import Key
from sully.domain.explaining.story import Explanation
from sully.domain.scheduling.diagnosis import CONDITION
from sully.explaining.answers import QUESTIONS
from sully.explaining.devices import AmbiguousError
from sully.explaining.world import World

GPU = f"{DRIVER}/n1/gpu-0"
OF_ALL = ("ResourceSlice", "DeviceTaintRule", "ResourceSlicePatch", "Node", "TaintRecord")
FLEET = ("ManagedCluster", "ManagedClusterSet")
KEPT_OFF = {
    "type": CONDITION,
    "status": "False",
    "message": '{"nodes":1,"requests":[{"claim":"team/d","request":"gpu","wanted":1,"taints":'
    '[{"key":"example.com/fw","effect":"NoSchedule","origin":"DeviceTaintRule/fw","devices":2}]}]}',
}
SATISFIED = condition("PlacementSatisfied", "False", "NotAllDecisionsScheduled", "1 is missing")


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """A question of somebody who sees one namespace, and the first sentence of the answer."""

    kind: str
    name: str
    objects: tuple[Obj, ...] = ()
    hidden: tuple[str, ...] = OF_ALL
    says: str
    cause: str = "NotAllowed"

    def ask(self) -> Explanation | None:
        question = QUESTIONS[self.kind]
        assert question.partly is not None
        world = World(snapshot(self.objects, after=70, hidden=self.hidden), everything=False)
        key = Key(NAMESPACE if question.namespaced else "", self.name)
        return question.partly(world, key, NAMESPACE)


GLIMPSES = {
    "a rule keeps his pod off": Glimpse(
        kind="rule",
        name="fw",
        objects=(pod("w", status={"conditions": [KEPT_OFF]}),),
        says="You may not see rule fw; in namespace team it keeps 1 pod off devices: team/w.",
    ),
    "a rule made his pods leave": Glimpse(
        kind="rule",
        name="fw",
        objects=(evicted("a"), evicted("b", after=10), evicted("c", "other")),
        says="You may not see rule fw; in namespace team it made 2 pods leave, the last, team/b, at"
        " 2030-01-01T12:00:10Z (60s ago).",
    ),
    "a rule did both": Glimpse(
        kind="rule",
        name="fw",
        objects=(evicted("a"), pod("w", status={"conditions": [KEPT_OFF]})),
        says="You may not see rule fw; in namespace team it keeps 1 pod off devices: team/w and"
        " made 1 pod leave, the last, team/a, at 2030-01-01T12:00:00Z (70s ago).",
    ),
    "a rule that has nothing to do with him": Glimpse(
        kind="rule",
        name="fw",
        says="You may not see rule fw, and nothing that you may see is about it.",
    ),
    "a device he has": Glimpse(
        kind="device",
        name="n1/gpu-0",
        objects=(claim("c", holds=("n1/gpu-0",), pods=("q",)), pod("q", "c", on="n1")),
        says="You may not see device n1/gpu-0; in namespace team it is held by claim team/c for pod"
        " team/q.",
    ),
    "a device he had": Glimpse(
        kind="device",
        name=GPU,
        objects=(evicted("a", after=10),),
        says=f"You may not see device {GPU}; in namespace team it was left by 1 pod, the last,"
        " team/a, at 2030-01-01T12:00:10Z (60s ago).",
    ),
    "his placement": Glimpse(
        kind="placement",
        name="p",
        objects=(told(wish(), SATISFIED), decision("eu-1")),
        hidden=FLEET,
        cause="NotAllDecisionsScheduled",
        says="Placement team/p has 1 cluster (eu-1) since 2030-01-01T12:00:00Z (70s ago): 1 is"
        " missing.",
    ),
    "a cluster he has": Glimpse(
        kind="cluster",
        name="eu-1",
        objects=(wish(), decision("eu-1")),
        hidden=FLEET,
        says="You may not see cluster eu-1; in namespace team 1 placement has it: team/p.",
    ),
    "a cluster he has not": Glimpse(
        kind="cluster",
        name="eu-2",
        objects=(wish(), decision("eu-1")),
        hidden=FLEET,
        says="You may not see cluster eu-2, and nothing that you may see is about it.",
    ),
}


@pytest.mark.parametrize("glimpse", GLIMPSES.values(), ids=GLIMPSES.keys())
def test_a_part_of_the_answer(glimpse: Glimpse) -> None:
    found = glimpse.ask()

    assert found is not None
    assert (found.state, found.cause) == ("NotVisible", glimpse.cause)
    assert found.summary[0] == glimpse.says
    assert found.remedies[0].startswith("Ask an admin")


def test_a_name_that_ends_as_two_devices_do_is_none() -> None:
    objects = (claim("a", holds=("n1/gpu-0",)), claim("b", holds=("n2/gpu-0",)))

    with pytest.raises(AmbiguousError, match=f"2 devices are called gpu-0: {GPU} and "):
        Glimpse(kind="device", name="gpu-0", objects=objects, says="").ask()


def test_a_placement_that_is_not_there() -> None:
    assert Glimpse(kind="placement", name="p", hidden=FLEET, says="").ask() is None


def test_whether_a_device_is_published_is_not_claimed_by_who_cannot_know() -> None:
    objects = (claim("c", holds=("n1/gpu-0",), pods=("q",)), pod("q", "c", on="n1"))
    world = World(snapshot(objects, hidden=OF_ALL), everything=False)
    found = QUESTIONS["pod"].answer(world, Key(NAMESPACE, "q"))

    assert found is not None
    assert found.details[0].rows == ((GPU, "team/c", "", "", ""),)
