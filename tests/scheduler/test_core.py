"""The scheduling core as a state machine: events in, effects out, whatever order they come in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.api.resource.types import (
    AllocationResult,
    DeviceAttribute,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceSlice,
)
from sully.client.informers.cache import Cache
from sully.client.objects import from_body, key_of
from sully.client.transport import Key, WatchEvent
from sully.domain.allocation.verdicts import UnallocatableReason
from sully.domain.claims.lifecycle import EXTENDED
from sully.domain.scheduling.causes import LeftoverClaim, NodesRejected
from sully.domain.scheduling.objects import Node, Pod, PodStatus
from sully.domain.scheduling.pod_matching import PodMatcher, PodSelector, selector_from
from sully.machinery.compat import Compat
from sully.machinery.formats.timestamps import format_time
from sully.scheduler.claim_resolution import ClaimState
from sully.scheduler.core import SchedulingCore
from sully.scheduler.effects import (
    Bind,
    Effect,
    MarkUnschedulable,
    WaitForClaims,
    WaitForEvaluation,
)
from sully.scheduler.options import SchedulerOptions
from sully.scheduler.queue import SchedulingQueue
from sully.testing import builders
from sully.testing.builders import DRIVER, class_, device, devices, node, pod_as, slice_
from sully.testing.clock import NOON
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES, RULES, SLICES

Object = Pod | Node | ResourceClaim | DeviceClass | ResourceSlice | DeviceTaintRule


class NumberedIds:
    """Ids that count."""

    def __init__(self) -> None:
        self._numbers = count()

    def uid(self) -> str:
        return f"uid-{next(self._numbers)}"

    def suffix(self) -> str:
        return f"s{next(self._numbers)}"


def pod(name: str, *claims: str, age: int = 0, **more: Any) -> Pod:
    metadata = {"creationTimestamp": format_time(NOON - timedelta(seconds=age))}
    known = {"namespace": "a", "node": "", "uid": name, "metadata": metadata}
    return pod_as(Pod, name, *claims, **known | more)


def claim(name: str, uid: str = "", **exactly: Any) -> ResourceClaim:
    requests = (builders.request(**exactly),)
    return builders.claim(name, pods=(), namespace="a", uid=uid or name, requests=requests)


def slice_of(name: str, count: int = 1) -> ResourceSlice:
    return slice_(name, *devices(count), pool=name, node=name, version=str(count))


@dataclass
class Cluster:
    """A core, and the informers that feed it."""

    options: SchedulerOptions = field(default_factory=SchedulerOptions)
    one_per_class: bool = False
    sliced: bool = False

    def __post_init__(self) -> None:
        self._slices, self._classes = Cache(SLICES), Cache(CLASSES)
        self._rules = Cache(RULES)
        inventory = Inventory(slices=self._slices, classes=self._classes, rules=self._rules)
        self.core = SchedulingCore(
            inventory,
            SchedulingQueue(lambda: 0.0),
            options=self.options,
            ids=NumberedIds(),
            sliced=self.sliced,
            one_per_class=self.one_per_class,
        )
        self._objects: dict[tuple[str, Key], Any] = {}
        inventory.on_change(self.core.handlers.devices_changed)

    def put(self, *objects: Object) -> None:
        """Deliver the event that an object was created or changed."""
        for obj in objects:
            self._deliver(type(obj).__name__, key_of(obj), obj)

    def delete(self, *objects: Object) -> None:
        """Deliver the event that an object was deleted."""
        for obj in objects:
            self._deliver(type(obj).__name__, key_of(obj), None)

    def _deliver(self, kind: str, key: Key, new: Any) -> None:
        old, handlers = self._objects.pop((kind, key), None), self.core.handlers
        if new is not None:
            self._objects[kind, key] = new
        event = WatchEvent("DELETED" if new is None else "MODIFIED", new or old, "")
        match kind:
            case "Pod":
                handlers.pod_changed(old, new)
            case "Node":
                handlers.node_changed(old, new)
            case "ResourceClaim":
                handlers.claim_changed(old, new)
            case "DeviceClass":
                self._classes.change(event)
                handlers.class_changed(old, new)
            case "DeviceTaintRule":
                self._rules.change(event)
            case _:
                self._slices.change(event)

    def get(self, kind: type[Object], name: str) -> Any:
        """Return an object of namespace `a`, as it was delivered."""
        return self._objects[kind.__name__, Key("a", name)]

    def effects(self) -> list[Effect]:
        """Schedule until no pod is active; execute nothing."""
        effects = []
        while (effect := self.core.schedule_one(NOON)) is not None:
            effects.append(effect)
        return effects

    def bind(self, effect: Effect) -> None:
        """Deliver the events that a binding causes."""
        assert isinstance(effect, Bind)
        for reservation in effect.claims:
            self.put(allocated(reservation.claim, reservation.allocation, effect.pod))
        spec = msgspec.structs.replace(effect.pod.spec, node_name=effect.node)
        self.put(msgspec.structs.replace(effect.pod, spec=spec))
        self.core.finish_binding(effect.key)


def allocated(
    claim: ResourceClaim, allocation: AllocationResult | None, user: Pod
) -> ResourceClaim:
    consumer = ResourceClaimConsumerReference(
        resource="pods", name=user.metadata.name, uid=user.metadata.uid
    )
    status = msgspec.structs.replace(
        claim.status,
        allocation=allocation or claim.status.allocation,
        reserved_for=(*claim.status.reserved_for, consumer),
    )
    metadata = msgspec.structs.replace(claim.metadata, resource_version="2")
    return msgspec.structs.replace(claim, metadata=metadata, status=status)


def described(effects: Sequence[Effect]) -> list[str]:
    """Write effects in a line each."""
    return [written(effect) for effect in effects]


def written(effect: Effect) -> str:
    match effect:
        case Bind(key=key, node=node, claims=claims):
            devices = ",".join(device.id.device for claim in claims for device in claim.devices)
            return f"bind {key.name} to {node} {devices}".strip()
        case MarkUnschedulable(key=key, result=result):
            return f"{key.name}: {type(result.error.cause).__name__}"
        case WaitForClaims(key=key, problem=problem):
            return f"{key.name}: {problem.state.name}"
        case WaitForEvaluation(key=key):
            return f"{key.name}: evaluate"
        case _:
            return f"create {effect.key.name}"


WORLD = (class_(), node("n"), slice_of("n"), claim("c"), pod("p", "c"))


@pytest.mark.parametrize("order", list(permutations(WORLD)))
def test_a_pod_is_bound_whatever_comes_first(order: tuple[Object, ...]) -> None:
    """An attempt after each event: the one that succeeds is the one after the last."""
    cluster, effects = Cluster(), []
    for obj in order:
        cluster.put(obj)
        effects += described(cluster.effects())

    assert effects[-1:] == ["bind p to n gpu-0"]
    assert not any(effect.startswith("bind") for effect in effects[:-1])


@settings(max_examples=examples(100))
@given(st.permutations([*WORLD, node("m"), slice_of("m", 2), claim("d"), pod("q", "d", age=9)]))
def test_events_in_any_order_give_the_same_bindings(order: list[Object]) -> None:
    cluster = Cluster()
    cluster.put(*order)

    assert described(cluster.effects()) == ["bind q to m gpu-0", "bind p to n gpu-0"]


FAILING = class_("gpu", f"device.attributes['{DRIVER}'].model == 'a100'")
MODELLED = device("gpu-0", model=DeviceAttribute(string_value="a100"))


@pytest.mark.parametrize(("good", "bad"), [("a", "b"), ("b", "a")])
def test_a_selector_that_fails_on_one_node_fails_the_pod_whatever_the_order(
    good: str, bad: str
) -> None:
    """In reference mode, as in Kubernetes; by default the best node is enough."""
    cluster = Cluster(SchedulerOptions(compat=Compat.KUBERNETES))
    cluster.put(FAILING, claim("c"), pod("p", "c"), node(good), node(bad))
    cluster.put(slice_(good, MODELLED, pool=good, node=good))
    cluster.put(slice_(bad, *devices(1), pool=bad, node=bad))

    assert described(cluster.effects()) == ["p: FilterFailed"]


def test_what_a_binding_takes_is_assumed() -> None:
    cluster = Cluster()
    cluster.put(*WORLD, claim("d"), pod("q", "d"))

    assert described(cluster.effects()) == ["bind p to n gpu-0", "q: NodesRejected"]


def test_what_a_failed_binding_took_is_released() -> None:
    cluster = Cluster()
    cluster.put(*WORLD, claim("d"), pod("q", "d"))
    bind, _ = cluster.effects()
    assert isinstance(bind, Bind)

    cluster.core.forget(bind)

    assert described(cluster.effects()) == ["bind q to n gpu-0"], "p backs off"
    cluster.core.requeue(bind.key)
    assert described(cluster.effects()) == ["p: NodesRejected"]


def test_a_pod_gets_no_attempt_while_it_is_bound() -> None:
    cluster = Cluster()
    cluster.put(*WORLD)
    (bind,) = cluster.effects()
    cluster.put(pod("p", "c", requests={"cpu": "1"}))
    assert cluster.effects() == []

    cluster.bind(bind)

    assert not cluster.core.is_in_progress(bind.key)
    assert cluster.effects() == []


def test_an_allocation_counts_once_when_an_event_shows_it() -> None:
    cluster = Cluster()
    cluster.put(*WORLD, claim("d"), pod("q", "d"))
    bind, _ = cluster.effects()
    cluster.bind(bind)
    assert cluster.effects() == [], "nothing was released"

    cluster.delete(cluster.get(Pod, "p"), cluster.get(ResourceClaim, "c"))

    assert described(cluster.effects()) == ["bind q to n gpu-0"]


def test_two_pods_share_a_claim_on_its_node() -> None:
    cluster = Cluster()
    cluster.put(class_(), node("m"), *WORLD, pod("q", "c"))
    first, second = cluster.effects()
    assert described([first, second]) == ["bind p to n gpu-0", "q: PodRejected"], (
        "it is in progress"
    )
    cluster.bind(first)

    assert described(cluster.effects()) == ["bind q to n"]


def recreate_claim(cluster: Cluster) -> None:
    cluster.delete(claim("d"))
    cluster.put(claim("d", uid="new", count=2))


RETRIES: dict[str, tuple[Callable[[Cluster], object], list[str]]] = {
    "a node that fits": (lambda it: it.put(node("m"), slice_of("m")), ["bind q to m gpu-0"]),
    "a device is published": (lambda it: it.put(slice_of("n", 2)), ["bind q to n gpu-1"]),
    "a device is released": (
        lambda it: it.delete(it.get(Pod, "p"), it.get(ResourceClaim, "c")),
        ["bind q to n gpu-0"],
    ),
    "its claim is recreated": (
        recreate_claim,
        ["q: NodesRejected"],
    ),
    "a pod is created": (lambda it: it.put(pod("r")), ["bind r to n"]),
    "a class of other devices": (lambda it: it.put(class_("nic")), ["q: NodesRejected"]),
}


@pytest.mark.parametrize("case", RETRIES)
def test_an_unschedulable_pod_waits_for_events_that_may_help(case: str) -> None:
    event, expected = RETRIES[case]
    cluster = Cluster()
    cluster.put(*WORLD, claim("d"), pod("q", "d"))
    bind, _ = cluster.effects()
    cluster.bind(bind)
    cluster.effects()

    event(cluster)

    assert described(cluster.effects()) == expected


def test_an_unschedulable_pod_has_a_cause_and_a_diagnosis() -> None:
    cluster = Cluster()
    cluster.put(*WORLD, claim("d"), pod("q", "d"))
    _, effect = cluster.effects()
    assert isinstance(effect, MarkUnschedulable)

    error, diagnosis = effect.result.error, effect.result.diagnosis
    assert error.cause == NodesRejected(1, {UnallocatableReason.CANNOT_ALLOCATE: 1})
    assert error.message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert diagnosis is not None
    assert diagnosis.reason == "DevicesInUse"


def test_a_claim_that_is_missing_is_not_reported() -> None:
    cluster = Cluster()
    cluster.put(class_(), node("n"), slice_of("n"), pod("p", "c"))
    (effect,) = cluster.effects()

    assert isinstance(effect, WaitForClaims)
    assert (effect.problem.state, effect.problem.claim) == (ClaimState.NOT_FOUND, Key("a", "c"))
    assert effect.problem.message == 'could not find ResourceClaim "a/c"'


EXTENDED_CLASS = class_(extended_resource_name="example.com/gpu")


def test_extended_resources_get_a_claim_with_a_name() -> None:
    cluster = Cluster()
    cluster.put(
        EXTENDED_CLASS, node("n"), slice_of("n"), pod("p", requests={"example.com/gpu": "1"})
    )
    (effect,) = cluster.effects()

    assert isinstance(effect, Bind)
    assert effect.extended is not None
    assert effect.extended.claim.metadata.name == "p-extended-resources-s0"
    assert [device.id.device for device in effect.extended.devices] == ["gpu-0"]


def test_a_leftover_claim_is_deleted_before_the_next_attempt() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    metadata: dict[str, Any] = {
        "name": "old",
        "namespace": "a",
        "uid": "old",
        "resourceVersion": "1",
    }
    metadata |= {"annotations": {EXTENDED: "true"}, "ownerReferences": [owner]}
    leftover = from_body(CLAIMS, {"metadata": metadata, "spec": {"devices": {}}})
    cluster = Cluster()
    cluster.put(
        EXTENDED_CLASS,
        node("n"),
        slice_of("n"),
        leftover,
        pod("p", requests={"example.com/gpu": "1"}),
    )
    (effect,) = cluster.effects()
    assert isinstance(effect, MarkUnschedulable)
    assert effect.leftover == leftover
    assert isinstance(effect.result.error.cause, LeftoverClaim)

    cluster.delete(leftover)

    assert described(cluster.effects()) == ["bind p to n"]


def test_selectors_are_evaluated_in_slices_by_the_caller() -> None:
    numbers = f"[{','.join(map(str, range(20)))}]"
    costly = f"{numbers}.all(a, {numbers}.all(b, true))"
    selectors = [{"cel": {"expression": f"{costly} && {number} >= 0"}} for number in range(20)]
    cluster = Cluster(sliced=True)
    cluster.put(class_(), node("n"), slice_of("n"), claim("c", selectors=selectors), pod("p", "c"))
    effects: list[str] = []
    while effect := cluster.core.schedule_one(NOON):
        effects.append(written(effect))
        if isinstance(effect, WaitForEvaluation):
            if effect.unfinished.work is not None:
                effect.unfinished.work()
            effect.unfinished.budget.resume()
            cluster.core.evaluated(effect.key)

    assert len(effects) > 1
    assert effects == ["p: evaluate"] * (len(effects) - 1) + ["bind p to n gpu-0"]


def equal_pods(number: int) -> list[Object]:
    claims = [claim(f"c{index}") for index in range(number)]
    return [*claims, *(pod(f"p{index}", f"c{index}") for index in range(number))]


def test_of_equal_pods_one_gets_attempts() -> None:
    cluster = Cluster(one_per_class=True)
    cluster.put(class_(), node("n"), *equal_pods(3))
    assert described(cluster.effects()) == [f"p{index}: NodesRejected" for index in range(3)]

    cluster.put(slice_of("n"))
    effects = cluster.effects()
    assert described(effects) == ["bind p0 to n gpu-0", "p1: NodesRejected"]
    cluster.bind(effects[0])
    assert cluster.effects() == []

    cluster.delete(cluster.get(Pod, "p1"))
    assert described(cluster.effects()) == ["p2: NodesRejected"]


@pytest.mark.parametrize("tolerates", [False, True])
def test_a_tainted_device_that_is_released_helps_only_claims_that_tolerate_it(
    tolerates: bool,
) -> None:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    rule = from_body(
        RULES,
        {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"pool": "n"}, "taint": taint}},
    )
    more: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]} if tolerates else {}
    cluster = Cluster(one_per_class=True)
    cluster.put(*WORLD)
    cluster.bind(cluster.effects()[0])
    cluster.put(rule, claim("d", **more), pod("q", "d"))
    assert described(cluster.effects()) == ["q: NodesRejected"]

    # The pod stays, so that only the devices are released.
    cluster.delete(cluster.get(ResourceClaim, "c"))

    assert described(cluster.effects()) == (["bind q to n gpu-0"] if tolerates else [])


def test_an_assigned_pod_is_held_once() -> None:
    """The informer has the newest state; an older one here would double the memory of a pod."""
    cluster = Cluster()
    cluster.put(node("node-1"), pod("p"))
    cluster.bind(cluster.effects()[0])

    bound = cluster.get(Pod, "p")
    assert cluster.core.nodes.pods.get("p") == ("node-1", bound)
    assert list(cluster.core.nodes.pods.on("node-1")) == [bound]

    cluster.put(msgspec.structs.replace(bound, status=PodStatus(phase="Running")))

    running = cluster.get(Pod, "p")
    assigned = cluster.core.nodes.pods.get("p")
    assert assigned is not None
    assert assigned.pod is running
    assert list(cluster.core.nodes.pods.on("node-1")) == [running]


def test_the_labels_of_a_pod_that_change_while_it_is_bound_are_counted() -> None:
    cluster = Cluster()
    cluster.put(node("node-1"), pod("p"))
    effect = cluster.effects()[0]
    assert isinstance(effect, Bind)
    selector = PodSelector(selector_from({"matchLabels": {"app": "x"}}), namespaces=None)
    pods, matcher = cluster.core.nodes.pods, PodMatcher((selector,))
    assert pods.count(matcher) == {}

    labeled = msgspec.structs.replace(effect.pod.metadata, labels={"app": "x"})
    spec = msgspec.structs.replace(effect.pod.spec, node_name=effect.node)
    cluster.put(msgspec.structs.replace(effect.pod, metadata=labeled, spec=spec))

    assert pods.count(matcher) == {"node-1": 1}
