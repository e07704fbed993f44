"""What is reported to help does help: random small worlds, in which a user follows it.

The words are read (following.py), not the values behind them: they are what people have. The judge
of what comes of it is the scheduler's own, on the changed world.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from explain.following import World, follow, smaller, tried, without
from explain.worlds import (
    DRIVER,
    Obj,
    ask,
    at,
    claim,
    class_,
    device,
    node,
    on_node,
    patch,
    pod,
    request,
    rule,
    slice_,
    taint,
)
from property_examples import examples

NODES = ("n1", "n2", "n3")
KEYS = ("example.com/a", "example.com/b")
EFFECTS = ("NoSchedule", "NoExecute")
CPUS = ("1", "3")
ZONES = ("a", "b")
SELDOM_TWO = (1, 1, 2)
FITS = "NotScheduledYet"

TAINT = st.builds(taint, st.sampled_from(EFFECTS), st.sampled_from(KEYS))
TAINTS = st.lists(TAINT, max_size=1)


@st.composite
def nodes(draw: st.DrawFn) -> World:
    results: World = [class_()]
    for name in NODES[: draw(st.integers(1, 3))]:
        marks = [{"key": key, "effect": "NoSchedule"} for key in draw(st.sets(st.just("infra")))]
        cordoned = draw(st.integers(0, 3)) == 0
        results.append(
            node(name, taints=marks, cordoned=cordoned, zone=draw(st.sampled_from(ZONES)))
        )
        devices = [
            device(f"gpu-{index}", *draw(TAINTS), attributes={"numa": str(index)})
            for index in range(draw(st.sampled_from((0, 2, 3, 4))))
        ]
        results.append(slice_(*devices, on=name))
    return results


@st.composite
def rules(draw: st.DrawFn) -> World:
    results = []
    for index in range(draw(st.integers(0, 3))):
        select = draw(
            st.sampled_from(
                ({}, {"pool": "n1"}, {"pool": "n2"}, {"device": "gpu-0"}, {"device": "gpu-1"})
            )
        )
        ends = {"sully.dev/expires-at": at(60)} if draw(st.booleans()) else {}
        effect, key = draw(st.sampled_from(EFFECTS)), draw(st.sampled_from(KEYS))
        value = draw(st.sampled_from(("", "v")))
        more = {"value": value} if value else {}
        results.append(
            rule(f"r{index}", effect, key=key, select=select or None, annotations=ends, **more)
        )
    return results


@st.composite
def patches(draw: st.DrawFn) -> World:
    if draw(st.integers(0, 3)):
        return []
    select = draw(st.sampled_from(({}, {"pool": "n1"}, {"device": "gpu-0"})))
    return [patch("p0", select=select, taints=[draw(TAINT)])]


@st.composite
def holders(draw: st.DrawFn, around: World) -> World:
    """Return claims with devices, each with a pod that also takes room; some have two claims."""
    free = [
        f"{item['spec']['pool']['name']}/{one['name']}"
        for item in around
        if item["kind"] == "ResourceSlice"
        for one in item["spec"]["devices"]
    ]
    held = draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    results: World = []
    by_node: dict[str, list[str]] = {}
    for entry in held:
        by_node.setdefault(entry.partition("/")[0], []).append(entry)
    for name, devices in by_node.items():
        together, shared = draw(st.booleans()), draw(st.integers(0, 3)) == 0
        for index, entry in enumerate(devices):
            user = f"u-{name}-{0 if together else index}"
            users = (user, f"w-{name}") if shared and index == 0 else (user,)
            results.append(
                claim(f"h-{name}-{index}", holds=(entry,), pods=users, selector=on_node(name))
            )
        if shared:
            results.append(pod(f"w-{name}", f"h-{name}-0", on=name, **takes("1")))
        for index in range(1 if together else len(devices)):
            names = [f"h-{name}-{x}" for x in (range(len(devices)) if together else (index,))]
            cpu = draw(st.sampled_from(CPUS))
            results.append(pod(f"u-{name}-{index}", *names, on=name, **takes(cpu)))
    return results


def takes(cpu: str) -> Obj:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}


TOLERATIONS = st.lists(
    st.builds(
        lambda key, effect, over: (
            {"key": key, "operator": "Exists", "effect": effect}
            | ({"tolerationSeconds": 1} if over and effect == "NoExecute" else {})
        ),
        st.sampled_from(KEYS),
        st.sampled_from(EFFECTS),
        st.booleans(),
    ),
    max_size=1,
)


@st.composite
def requests(draw: st.DrawFn, name: str) -> Obj:
    tolerations = draw(TOLERATIONS)
    form = draw(st.sampled_from(("count", "count", "choice", "count", "all")))
    if form == "all":
        return request(name, allocationMode="All", count=0, tolerations=tolerations)
    count = draw(st.sampled_from(SELDOM_TWO))
    if form == "count":
        return request(name, count=count, tolerations=tolerations)
    choices = [
        {"name": "two", "deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2},
        {"name": "one", "deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1},
    ]
    return {"name": name, "firstAvailable": [x | {"tolerations": tolerations} for x in choices]}


@st.composite
def waiting(draw: st.DrawFn) -> World:
    """Return a pod `p` with its claims."""
    results: World = []
    names = [f"c{index}" for index in range(draw(st.sampled_from(SELDOM_TWO)))]
    for name in names:
        asked = [draw(requests(f"r{index}")) for index in range(draw(st.sampled_from(SELDOM_TWO)))]
        match_ = [{"matchAttribute": f"{DRIVER}/numa"}] if draw(st.integers(0, 4)) == 0 else []
        results.append(claim(name, *asked, constraints=match_))
    spec: dict[str, Any] = takes(draw(st.sampled_from(CPUS))) | {"tolerations": []}
    zone = draw(st.sampled_from(("", "", "a", "b")))
    spec["nodeSelector"] = {"zone": zone} if zone else {}
    results.append(pod("p", *names, **spec))
    return results


@st.composite
def shared(draw: st.DrawFn, around: World) -> World:
    """Return a claim of the waiting pod that a user uses already."""
    names = [item["spec"]["pool"]["name"] for item in around if item["kind"] == "ResourceSlice"]
    on = draw(st.sampled_from(names))
    made = claim("s", holds=(f"{on}/gpu-9",), pods=("s-user",), selector=on_node(on))
    return [made, pod("s-user", "s", on=on, **takes("1"))]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    around = draw(nodes())
    marks = [*draw(rules()), *draw(patches())]
    results = [*around, *marks, *draw(holders(around)), *draw(waiting())]
    if draw(st.integers(0, 5)):
        return results
    results[-1]["spec"]["resourceClaims"].append({"name": "s", "resourceClaimName": "s"})
    return [*results, *draw(shared(around))]


AFTER = 30
"""Seconds after noon, when tolerations of one second are over and no rule has ended."""


def judged(world: World) -> tuple[str, str, tuple[str, ...]]:
    result = ask("pod", "p", *world, after=AFTER)
    return result.cause, result.summary[0], result.remedies


def shares(world: World) -> bool:
    """Report whether the pod has a partner; deleting the other is reported, but not tried."""
    return any(obj["metadata"]["name"] == "s" for obj in world)


def emptied(world: World) -> World:
    """Return the world with everything out of the way that may be."""
    users = {x["metadata"]["name"] for x in world if x["kind"] == "Pod"} - {"p"}
    marks = ("DeviceTaintRule", "ResourceSlicePatch")
    results = [x for x in without(world, list(users)) if x["kind"] not in marks]
    for result in results:
        if result["kind"] == "Node":
            result["spec"] = {}
        for one in result["spec"].get("devices", ()) if result["kind"] == "ResourceSlice" else ():
            one["taints"] = []
        if result["kind"] == "Pod":
            result["spec"]["nodeSelector"] = {}
    return results


@settings(max_examples=examples(100))
@given(worlds())
def test_whoever_follows_the_remedy_gets_the_pod_placed(world: World) -> None:
    cause, text, remedies = judged(world)
    if cause == FITS:
        return
    known = [item for item in map(tried, remedies) if item is not None]
    for promised, ways in known:
        for way in ways:
            now, reported, _ = judged(follow(world, way))
            assert now == FITS, (remedies, reported)
            # What is removed is removed for alternatives and nodes that need not tolerate it, too.
            assert f"node {promised} now" in reported or way is not ways[0], (remedies, reported)
            for less in smaller(way):
                assert judged(follow(world, less))[0] != FITS, (remedies, less)
    if not known and not shares(world):
        assert judged(emptied(world))[0] != FITS, (text, remedies)
