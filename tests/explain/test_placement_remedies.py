"""Remedies of placements work: those for all its clusters, and those for one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from explain.test_fleet import FLEET, GROUP, cluster, decision, placement, predicate, taint
from explain.worlds import NAMESPACE, Obj, snapshot
from property_examples import examples
from sully.client.transport import Key
from sully.explain.explanation import Explanation
from sully.explain.questions import explain_selection
from sully.explain.reader import Reader

AFTER = 30
NAMES = ("a", "b", "c", "d")
KEYS = ("maintenance", "disk")
EFFECTS = ("NoSelect", "NoSelectIfNew", "PreferNoSelect")
ENVS = ("dev", "prod")
World = list[Obj]

_TOLERATE = re.compile(r"^[Tt]olerate (?P<taints>.+), or have the taints? removed$")
_GETS = re.compile(r"^The placement would then get (?P<number>\d+) clusters?\.$")
_ASKS = re.compile(r"^[Rr]equest (?P<number>\d+) clusters?$")
_AT_MOST = re.compile(r"^Request at most (?P<number>\d+) clusters?, or add some to the sets\.$")


def split(marks: str) -> list[str]:
    return re.split(r", | and ", marks)


def tolerations(marks: str) -> list[Obj]:
    results = []
    for text in split(marks):
        key, _, effect = text.partition(":")
        results.append({"key": key, "operator": "Equal", "effect": effect})
    return results


@st.composite
def worlds(draw: st.DrawFn) -> World:
    results: World = [*deepcopy(FLEET)]
    for name in NAMES[: draw(st.integers(1, 4))]:
        marks = draw(
            st.lists(
                st.tuples(st.sampled_from(KEYS), st.sampled_from(EFFECTS)), unique=True, max_size=2
            )
        )
        env = draw(st.sampled_from(ENVS))
        member = draw(st.integers(0, 4)) > 0
        made = [taint(key, effect) for key, effect in marks]
        results.append(cluster(name, *made, labels={"env": env}, member=member))
    spec: Obj = {"tolerations": []}
    if draw(st.booleans()):
        spec["numberOfClusters"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        spec["predicates"] = [predicate(env="prod")]
    if draw(st.booleans()):
        over = {"tolerationSeconds": 1} if draw(st.booleans()) else {}
        spec["tolerations"] = [{"key": "disk", "operator": "Exists"} | over]
    return [
        *results,
        placement(**spec),
        decision(*draw(st.sets(st.sampled_from(NAMES), max_size=2))),
    ]


def asked(world: World, about: str = "") -> Explanation:
    selection = explain_selection(Reader(snapshot(world, after=AFTER)), Key(NAMESPACE, "p"), about)
    assert selection is not None
    return selection


def selected(world: World) -> set[str]:
    rows = next((detail for detail in asked(world).details if detail.title == "Clusters"), None)
    return {name for name, stage, _ in rows.rows if stage == "Selected"} if rows else set()


def expected(world: World) -> Obj:
    (result,) = (obj["spec"] for obj in world if obj["kind"] == "Placement")
    return result


def follow(world: World, steps: Sequence[str], about: str = "") -> World:
    world = deepcopy(world)
    for step in steps:
        if match := _TOLERATE.match(step):
            expected(world)["tolerations"] += tolerations(match["taints"])
        elif match := _ASKS.match(step):
            expected(world)["numberOfClusters"] = int(match["number"])
        elif about and "label cluster" in step:
            for obj in world:
                if obj["kind"] == "ManagedCluster" and obj["metadata"]["name"] == about:
                    obj["metadata"]["labels"]["env"] = "prod"
        elif step.lower().startswith("widen the predicates"):
            del expected(world)["predicates"]
        else:
            raise AssertionError(f"nobody knows how to do this: {step}")
    return world


def with_taints_removed(world: World, steps: Sequence[str]) -> tuple[World, list[str]]:
    """Take the taints away instead of tolerating them; return the other steps."""
    world = deepcopy(world)
    rest = []
    for step in steps:
        match = _TOLERATE.match(step)
        marks = split(match["taints"]) if match else []
        rest += [] if match else [step]
        for obj in world:
            if obj["kind"] == "ManagedCluster":
                taints = obj["spec"].get("taints", [])
                obj["spec"]["taints"] = [
                    x for x in taints if f"{x['key']}:{x['effect']}" not in marks
                ]
    return world, rest


def fewer(steps: Sequence[str]) -> Iterator[list[str]]:
    """Yield the steps with one thing less."""
    for at, step in enumerate(steps):
        rest = [*steps[:at], *steps[at + 1 :]]
        match = _TOLERATE.match(step)
        marks = split(match["taints"]) if match else []
        for mark in marks if len(marks) > 1 else ():
            less = " and ".join(one for one in marks if one != mark)
            yield [*rest, f"tolerate {less}, or have the taint removed"]
        if len(marks) < 2:
            yield rest


@settings(max_examples=examples(60))
@given(worlds())
def test_a_placement_gets_what_is_reported(world: World) -> None:
    result, has = asked(world), selected(world)
    want = expected(world).get("numberOfClusters", 1)
    for text in result.remedies:
        if at_most := _AT_MOST.match(text):
            assert int(at_most["number"]) < want
            continue
        if "would then" not in text:
            continue
        *steps, then = re.split(r"\. Also |\. (?=The )", text)
        promise = _GETS.match(then)
        assert promise is not None, text
        number = int(promise["number"])
        assert number > len(has)
        assert len(selected(follow(world, steps))) == number, text
        assert len(selected(follow(*with_taints_removed(world, steps)))) == number, text
        for less in fewer(steps):
            assert len(selected(follow(world, less))) < min(want, number), text


@settings(max_examples=examples(60))
@given(worlds(), st.sampled_from(NAMES))
def test_a_placement_gets_the_cluster_that_is_asked_about(world: World, about: str) -> None:
    result = asked(world, about)
    mine = [
        remedy
        for remedy in result.remedies
        if remedy.endswith(f"Cluster {about} would then be selected.")
    ]
    for text in mine:
        *steps, _ = re.split(r"\. Also |\. (?=Cluster )", text)
        assert about not in selected(world)
        assert about in selected(follow(world, steps, about)), text
        assert about in selected(follow(*with_taints_removed(world, steps), about)), text
        for less in fewer(steps):
            assert about not in selected(follow(world, less, about)), text
    known = {
        obj["metadata"]["name"]
        for obj in world
        if obj["kind"] == "ManagedCluster" and f"{GROUP}/clusterset" in obj["metadata"]["labels"]
    }
    assert mine or about in selected(world) or about not in known
