"""What a plan for clusters and placements predicts is what the hub and the placement controller
then do: random small fleets, the real controllers, and a clock that only the test moves."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import manifests
from controllers.placement.placing import (
    BINDINGS,
    CLUSTERS,
    DECISIONS,
    PLACEMENTS,
    SCORES,
    SETS,
)
from controllers.world import NAMESPACES, SCHEME, Obj, World, running
from property_examples import examples
from sully.api.cluster.types import HEALTH_KEYS, PLACEMENT_LABEL, SET_LABEL, UNREACHABLE
from sully.client.discovery.resources import of_scheme
from sully.client.objects import from_body
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.placement.settings import PlacementSettings
from sully.domain.clusters.health import AVAILABLE
from sully.domain.planning.report import DecisionChange
from sully.machinery.formats.timestamps import format_time
from sully.machinery.gates import Gates
from sully.planning.dryrun.changes import Change, Put, Remove
from sully.planning.placements import forecast, plan_placements
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views import fleet_kinds as fleetkinds
from sully.views.fleet_kinds import POLICIES
from sully.views.snapshot.kinds import FLEET
from sully.views.snapshot.loading import load

TEAM, SET, OTHER = "team", "prod", "lab"
POLICY: Kind[Obj] = POLICIES.read_as(dict)
STEP = 1.0
UNTIL = 12
JUST = 0.01
Move = tuple[int, str, tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Member:
    """A cluster: what is on it, how it is, and how many seconds ago its taints came."""

    region: str = "eu"
    health: str = "True"
    taints: tuple[tuple[str, str], ...] = ()
    age: int = 0
    score: int | None = None
    cpu: int = 0


@dataclass(frozen=True)
class DesiredPlacement:
    """A placement."""

    want: int | None = None
    region: str = ""
    tolerations: tuple[tuple[str, int | None], ...] = ()
    weights: tuple[tuple[str, int], ...] = ()
    by_score: bool = False


@dataclass(frozen=True)
class Act:
    """One thing that a user does to the fleet."""

    verb: str
    number: int = 0
    taint: tuple[str, str] = ("k", "NoSelect")
    region: str = "us"
    desired: DesiredPlacement = DesiredPlacement()


@dataclass(frozen=True)
class Scene:
    """A fleet, and what is done to it."""

    members: tuple[Member, ...]
    desired_placements: tuple[DesiredPlacement, ...]
    acts: tuple[Act, ...]
    policy: str = ""
    """The region whose clusters a policy taints when they are not available, if any."""
    flags: PlacementSettings = field(default_factory=PlacementSettings)


@asynccontextmanager
async def controlled(flags: PlacementSettings) -> AsyncIterator[World]:
    world = World()
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=Gates(),
        ids=Ids(random.Random(2)),
        chosen=frozenset(("clusters", "garbagecollection", "placement")),
        placement=flags,
    )
    manager = build_manager(config, world.clock, Metrics())
    async with running(manager):
        await world.settle()
        yield world


# -- filling --------------------------------------------------------------------------------------


async def fill(world: World, scene: Scene) -> None:
    for name in (TEAM, *(f"c{number}" for number, _ in enumerate(scene.members))):
        await world.admin.create(NAMESPACES, {"metadata": {"name": name}})
    for item in (SET, OTHER):
        await world.admin.create(SETS, manifests.cluster_set(item))
    await world.admin.create(BINDINGS, manifests.set_binding(SET, TEAM))
    if scene.policy:
        await world.admin.create(POLICY, policy(scene.policy))
    for number, desired in enumerate(scene.desired_placements):
        await world.admin.create(PLACEMENTS, placement(f"w{number}", desired))
    for number, member in sorted(enumerate(scene.members), key=lambda item: -item[1].age):
        await join(world, f"c{number}", member)
        await world.pass_time(1, step=1)
    await world.pass_time(2, step=1)


def policy(region: str) -> Obj:
    taint = {"key": "policy", "effect": "NoSelect"}
    condition = {"type": AVAILABLE, "status": "False"}
    delays = {"setAfterSeconds": 5, "clearAfterSeconds": 5}
    rule = {"condition": condition, "taint": taint, **delays}
    selector = {"matchLabels": {"region": region}}
    return manifests.body("ClusterTaintPolicy", "p", {"clusterSelector": selector, "rules": [rule]})


async def join(world: World, name: str, member: Member) -> None:
    await world.admin.create(CLUSTERS, cluster(name, member))
    now = format_time(world.clock.now())
    reported = {"type": AVAILABLE, "status": member.health, "reason": "T", "message": ""}
    status: Obj = {"conditions": [reported | {"lastTransitionTime": now}]} if member.health else {}
    if member.cpu:
        amounts = {"cpu": str(member.cpu), "memory": "1Gi"}
        status |= {"allocatable": amounts, "capacity": {"cpu": "64", "memory": "64Gi"}}
    await world.admin.patch(CLUSTERS, Key("", name), {"status": status}, subresource="status")
    if member.score is not None:
        at = Key(name, "demo")
        await world.admin.create(SCORES, {"metadata": {"name": at.name, "namespace": name}})
        scores = {"scores": [{"name": "fit", "value": member.score}]}
        await world.admin.patch(SCORES, at, {"status": scores}, subresource="status")


def cluster(name: str, member: Member) -> Obj:
    labels = {SET_LABEL: SET, "region": member.region}
    taints = [{"key": key, "effect": effect} for key, effect in member.taints]
    return manifests.cluster(name, *taints, labels=labels)


def placement(name: str, desired: DesiredPlacement) -> Obj:
    spec: Obj = {
        "tolerations": [
            {"key": key, "operator": "Exists"}
            | ({"tolerationSeconds": seconds} if seconds is not None else {})
            for key, seconds in desired.tolerations
        ]
    }
    if desired.want is not None:
        spec["numberOfClusters"] = desired.want
    if desired.region:
        required = {"labelSelector": {"matchLabels": {"region": desired.region}}}
        spec["predicates"] = [{"requiredClusterSelector": required}]
    weighed = [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}
        for name, weight in desired.weights
    ]
    if desired.by_score:
        add_on = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "fit"}}
        weighed.append({"scoreCoordinate": add_on, "weight": 1})
    if weighed:
        spec["prioritizerPolicy"] = {"mode": "Additive", "configurations": weighed}
    return manifests.placement(name, spec, TEAM)


# -- acting ---------------------------------------------------------------------------------------


@dataclass
class Acting:
    """Executes a scene, in earnest or dry."""

    world: World
    scene: Scene
    dry: bool
    changes: list[Change] = field(default_factory=list)
    _changed: set[str] = field(default_factory=set)

    async def run(self) -> list[Change]:
        for act in self.scene.acts:
            # A dry run knows nothing of another before it, so each thing is changed once.
            if (about := self._target(act)) not in self._changed:
                self._changed.add(about)
                await getattr(self, f"_{act.verb}")(act)
                await self.world.pass_time(JUST)
        return self.changes

    def _target(self, act: Act) -> str:
        if act.verb in ("place", "unplace"):
            # One more than there are: a new one.
            return f"w{act.number % (len(self.scene.desired_placements) + (act.verb == 'place'))}"
        if act.verb in ("bind", "unbind", "select", "unselect"):
            return f"{act.verb.removeprefix('un')} {self._set(act)}"
        if act.verb in ("police", "unpolice"):
            return "p"
        return f"c{act.number % len(self.scene.members)}"

    def _set(self, act: Act) -> str:
        # The last one is not there yet.
        return (SET, OTHER, "more")[act.number % (2 if act.verb.startswith("un") else 3)]

    async def _write(self, kind: Kind[Obj], body: Obj, typed: Kind[Any]) -> None:
        namespace = body["metadata"].get("namespace", "")
        key = Key(namespace, body["metadata"]["name"])
        known = key in {
            Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])
            for item in (await self.world.admin.list(kind)).items
        }
        options = WriteOptions(dry_run=self.dry)
        if known:
            made = await self.world.admin.patch(kind, key, body, options=options)
        else:
            made = await self.world.admin.create(kind, body, "", options)
        self.changes.append(Put(typed, from_body(typed, made)))

    async def _cluster(self, act: Act, **changed: object) -> None:
        await self._write(
            CLUSTERS, {"metadata": {"name": self._target(act)}} | changed, fleetkinds.CLUSTERS
        )

    async def _taint(self, act: Act) -> None:
        cluster = await self.world.admin.get(CLUSTERS, Key("", self._target(act)))
        key, effect = act.taint
        taints = [taint for taint in cluster["spec"].get("taints") or () if taint["key"] != key]
        await self._cluster(act, spec={"taints": [*taints, {"key": key, "effect": effect}]})

    async def _untaint(self, act: Act) -> None:
        cluster = await self.world.admin.get(CLUSTERS, Key("", self._target(act)))
        taints = [
            taint for taint in cluster["spec"].get("taints") or () if taint["key"] in HEALTH_KEYS
        ]
        await self._cluster(act, spec={"taints": taints or None})

    async def _label(self, act: Act) -> None:
        metadata = {"name": self._target(act), "labels": {"region": act.region}}
        await self._write(CLUSTERS, {"metadata": metadata}, fleetkinds.CLUSTERS)

    async def _move(self, act: Act) -> None:
        metadata = {"name": self._target(act), "labels": {SET_LABEL: OTHER}}
        await self._write(CLUSTERS, {"metadata": metadata}, fleetkinds.CLUSTERS)

    async def _delete(self, act: Act) -> None:
        key = Key("", self._target(act))
        if not self.dry:
            await self.world.admin.delete(CLUSTERS, key)
        self.changes.append(Remove(fleetkinds.CLUSTERS, key))

    async def _place(self, act: Act) -> None:
        body = placement(self._target(act), act.desired)
        await self._write(PLACEMENTS, body, fleetkinds.PLACEMENTS)

    async def _unplace(self, act: Act) -> None:
        key = Key(TEAM, self._target(act))
        if not self.dry:
            await self.world.admin.delete(PLACEMENTS, key)
        self.changes.append(Remove(fleetkinds.PLACEMENTS, key))

    async def _remove(self, kind: Kind[Obj], typed: Kind[Any], key: Key) -> None:
        if key in {
            Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])
            for item in (await self.world.admin.list(kind)).items
        }:
            if not self.dry:
                await self.world.admin.delete(kind, key)
            self.changes.append(Remove(typed, key))

    async def _bind(self, act: Act) -> None:
        body = manifests.set_binding(self._set(act), TEAM)
        await self._write(BINDINGS, body, fleetkinds.BINDINGS)

    async def _unbind(self, act: Act) -> None:
        await self._remove(BINDINGS, fleetkinds.BINDINGS, Key(TEAM, self._set(act)))

    async def _select(self, act: Act) -> None:
        labels = {"matchLabels": {"region": act.region}}
        spec = {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": labels}}
        body = {"metadata": {"name": self._set(act)}, "spec": spec}
        await self._write(SETS, body, fleetkinds.SETS)

    async def _unselect(self, act: Act) -> None:
        await self._remove(SETS, fleetkinds.SETS, Key("", self._set(act)))

    async def _police(self, act: Act) -> None:
        await self._write(POLICY, policy(act.region), fleetkinds.POLICIES)

    async def _unpolice(self, act: Act) -> None:
        await self._remove(POLICY, fleetkinds.POLICIES, Key("", "p"))


# -- comparing ------------------------------------------------------------------------------------

Decided = dict[str, frozenset[str]]


async def decisions(world: World) -> Decided:
    result: dict[str, set[str]] = defaultdict(set)
    for placement in (await world.admin.list(PLACEMENTS)).items:
        result[placement["metadata"]["name"]] |= set()
    for decision in (await world.admin.list(DECISIONS)).items:
        named = (decision.get("status") or {}).get("decisions") or ()
        owner = decision["metadata"]["labels"][PLACEMENT_LABEL]
        result[owner] |= {one["clusterName"] for one in named}
    return {name: frozenset(clusters) for name, clusters in result.items()}


async def watch(world: World, scene: Scene) -> tuple[set[Move], Decided]:
    """Execute the scene, and note what every placement gets and loses at which time."""
    known, moves = await decisions(world), set()
    await Acting(world, scene, dry=False).run()
    # Controllers that overtake one another try again in a moment; what ends has ended right after.
    await world.pass_time(JUST)
    for after in range(UNTIL + 1):
        result = await decisions(world)
        for name in known | result:
            had, has = known.get(name, frozenset()), result.get(name, frozenset())
            if had != has:
                moves.add((after, name, tuple(sorted(had - has)), tuple(sorted(has - had))))
        known = result
        await world.pass_time(STEP, step=STEP)
    return moves, known


def decision_moves(moves: Iterable[DecisionChange]) -> set[Move]:
    return {
        (
            int(move.after_seconds),
            move.placement.partition("/")[2],
            move.removed_clusters,
            move.added_clusters,
        )
        for move in moves
        if move.after_seconds <= UNTIL
    }


async def check(scene: Scene) -> None:
    async with controlled(scene.flags) as world:
        await fill(world, scene)
        snapshot = await load(world.admin, FLEET, now=world.clock.now())
        changes = await Acting(world, scene, dry=True).run()
        plan = plan_placements(snapshot, changes, scene.flags)
        anyway = forecast(snapshot, flags=scene.flags)
        before = await decisions(world)
        moves, after = await watch(world, scene)
    begun = snapshot.taken
    expected = {
        (int((x.at - begun).total_seconds()), x.placement[1], x.left, x.joined)
        for x in anyway.moves
    }
    assert decision_moves(plan.decision_changes) <= moves
    assert moves - decision_moves(plan.decision_changes) <= expected
    ends = before | {x.placement[1]: frozenset(x.after) for x in anyway.differences}
    ends |= {x.placement.partition("/")[2]: frozenset(x.after) for x in plan.placements}
    assert {name: has for name, has in ends.items() if has} == {
        name: has for name, has in after.items() if has
    }


KEYS = st.sampled_from(["k", "k", "m", UNREACHABLE])
EFFECTS = st.sampled_from(["NoSelect", "NoSelect", "NoSelectIfNew", "PreferNoSelect"])
TAINTS = st.tuples(st.sampled_from(["k", "m"]), EFFECTS)
REGIONS = st.sampled_from(["eu", "us"])
MEMBERS = st.builds(
    Member,
    region=REGIONS,
    health=st.sampled_from(["True", "True", "True", "False", "Unknown", ""]),
    taints=st.lists(TAINTS, max_size=2, unique_by=lambda item: item[0]).map(tuple),
    age=st.integers(0, 3),
    score=st.sampled_from([None, 0, 40, 80]),
    cpu=st.sampled_from([0, 8, 32]),
)
WISHES = st.builds(
    DesiredPlacement,
    want=st.sampled_from([None, 1, 1, 2, 3]),
    region=st.sampled_from(["", "", "eu"]),
    tolerations=st.lists(
        st.tuples(KEYS, st.sampled_from([None, 0, 3, 8])),
        max_size=2,
        unique_by=lambda item: item[0],
    ).map(tuple),
    # None below nothing: who would rather have others moves with every look, at whatever it is.
    weights=st.lists(
        st.tuples(
            st.sampled_from(["Balance", "Steady", "ResourceAllocatableCPU"]), st.integers(0, 3)
        ),
        max_size=2,
        unique_by=lambda item: item[0],
    ).map(tuple),
    by_score=st.booleans(),
)
# No new cluster: whether a placement sees it before the hub taints it is chance.
VERBS = ["taint", "taint", "untaint", "label", "move", "delete", "place", "unplace"]
VERBS += ["bind", "unbind", "select", "unselect", "police", "unpolice"]
ACTS = st.builds(
    Act,
    verb=st.sampled_from(VERBS),
    number=st.integers(0, 3),
    # Not the hub's own: whoever sets those by hand races with the hub.
    taint=TAINTS,
    region=REGIONS,
    desired=WISHES,
)
SCENES = st.builds(
    Scene,
    members=st.lists(MEMBERS, min_size=1, max_size=4).map(tuple),
    desired_placements=st.lists(WISHES, min_size=1, max_size=3).map(tuple),
    acts=st.lists(
        ACTS, min_size=1, max_size=2, unique_by=lambda item: (item.number, item.verb)
    ).map(tuple),
    policy=st.sampled_from(["", "", "eu"]),
    # No limit of removals: a plan starts with a full minute of it.
    flags=st.builds(PlacementSettings, toleration_seconds=st.sampled_from([None, None, 3])),
)


FULL = (("m", "NoSelect"), ("k", "NoSelect"))
SHARED = (
    Member(taints=FULL),
    Member(taints=FULL),
    Member(taints=(("k", "PreferNoSelect"),)),
    Member(health=""),
)
TWO = (Member(health="False", age=3), Member("us"))
PATIENT = ((UNREACHABLE, None), ("k", None))


@settings(max_examples=examples(30))
@given(SCENES)
@example(  # The first makes room, and comes back because the second went the same way.
    Scene(
        SHARED,
        (
            DesiredPlacement(
                1, "", PATIENT, (("ResourceAllocatableCPU", 1), ("Balance", 1)), by_score=True
            ),
            DesiredPlacement(1, weights=(("Balance", 1),), by_score=True),
        ),
        (Act("untaint"),),
    )
)
@example(  # One would move, did anything make it look again.
    Scene(SHARED, (DesiredPlacement(1, "", PATIENT), DesiredPlacement(1)), (Act("taint"),))
)
@example(Scene(TWO, (DesiredPlacement(), DesiredPlacement(1)), (Act("unbind"),)))
@example(
    Scene(
        TWO,
        (DesiredPlacement(), DesiredPlacement(1)),
        (Act("select", 1, region="eu"), Act("bind", 1)),
    )
)
@example(Scene(TWO, (DesiredPlacement(), DesiredPlacement(1)), (Act("unselect"),)))
@example(Scene(TWO, (DesiredPlacement(), DesiredPlacement(1)), (Act("police", region="eu"),)))
@example(Scene(TWO, (DesiredPlacement(), DesiredPlacement(1)), (Act("unpolice"),), policy="eu"))
def test_what_was_planned_for_a_fleet_is_what_happens(scene: Scene) -> None:
    asyncio.run(check(scene))
