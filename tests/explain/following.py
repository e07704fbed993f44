"""Follows the remedies of an explanation: reads the text as a person would, changes the world.

A remedy is made of steps, and a step may offer an alternative (tolerate, or have it removed). Here
each becomes a change of the manifests that a world is made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product

from explain.worlds import NAMESPACE, Obj

World = list[Obj]
Change = Callable[[World, Sequence[str]], World]


@dataclass(frozen=True)
class Step:
    """One thing to do, to any number of things."""

    names: tuple[str, ...]
    change: Change
    least: bool = True
    """None of the things is reported in vain."""

    def smaller(self) -> Iterator[Step]:
        """Yield the same with one thing less."""
        for name in self.names:
            yield replace(self, names=tuple(one for one in self.names if one != name))


Way = tuple[Step, ...]


def follow(world: World, way: Way) -> World:
    """Follow a remedy."""
    for step in way:
        world = step.change(world, step.names) if step.names else world
    return world


def smaller(way: Way) -> Iterator[Way]:
    """Yield the same with one thing less, if all of it is reported to be needed."""
    for at, step in enumerate(way):
        if all(item.least for item in way):
            yield from ((*way[:at], less, *way[at + 1 :]) for less in step.smaller())


_TRIED = re.compile(r"^(?P<steps>.*)\. The pod would then be scheduled to node (?P<node>\S+)\.$")
_MARK = r"[^\s=:]+(?:=[^:\s]+)?:[^\s,]+"
_TOLERATE = re.compile(
    r"^tolerate (?P<taints>.+?)(?: without tolerationSeconds)? in (?P<where>request .+?)"
    r"(?P<other>, or have the taints? removed|, or wait until .+)?$"
)
_CLAIMS = re.compile(r"^wait until claims? (?P<names>.+) (?:is|are) deallocated$")
_LEAVE = re.compile(r"^wait until pods? (?P<names>.+) (?:is|are) gone from node (?P<node>\S+)$")
_UNCORDON = re.compile(r"^uncordon node (?P<node>\S+) \(kubectl uncordon \S+\)$")
_NODE_TAINTS = re.compile(r"^tolerate (?P<taints>.+) of node \S+ in spec\.tolerations of the pod$")
_CHOOSE = re.compile(
    r"^change the node selector or affinity of the pod, or label node (?P<node>\S+), .*$"
)


def tried(remedy: str) -> tuple[str, list[Way]] | None:
    """Return the node that is promised, and each way to get it.

    None for advice that promises nothing.
    """
    match = _TRIED.match(remedy)
    if match is None:
        return None
    texts = [text[:1].lower() + text[1:] for text in match["steps"].split(". Also ")]
    return match["node"], list(product(*(list(_alternatives(text)) for text in texts)))


def _alternatives(text: str) -> Iterator[Step]:
    if match := _TOLERATE.match(text):
        where, taints = match["where"], match["taints"]
        marks = tuple(dict.fromkeys(re.findall(rf"({_MARK}) from ", taints)))
        yield Step(marks, lambda world, names: _tolerating(world, names, where))
        origins = tuple(re.findall(rf"{_MARK} from (?:rule|slice|patch) [^,\s]+", taints))
        if match["other"]:
            # Several objects may stand behind one mark; it is not known whether one would do.
            yield Step(origins, _without_taints, least=len(origins) == len(marks) == 1)
    elif match := _CLAIMS.match(text):
        yield Step(tuple(re.findall(rf"({NAMESPACE}/\S+) \(", match["names"])), _given_back)
    elif match := _LEAVE.match(text):
        yield Step(tuple(re.findall(rf"{NAMESPACE}/([^,\s]+)", match["names"])), without)
    elif match := _UNCORDON.match(text):
        yield Step((match["node"],), _uncordoned)
    elif match := _NODE_TAINTS.match(text):
        yield Step(tuple(re.findall(_MARK, match["taints"])), _let_on)
    elif match := _CHOOSE.match(text):
        yield Step((match["node"],), _labelled)
    else:
        raise AssertionError(f"nobody knows how to do this: {text}")


def _tolerations(marks: Iterable[str]) -> list[Obj]:
    results = []
    for mark in marks:
        rest, _, effect = mark.rpartition(":")
        key, _, value = rest.partition("=")
        results.append({"key": key, "operator": "Equal", "value": value, "effect": effect})
    return results


def _named(world: World, kind: str, names: Sequence[str]) -> Iterator[Obj]:
    return (x for x in world if x["kind"] == kind and x["metadata"]["name"] in names)


def _uncordoned(world: World, nodes: Sequence[str]) -> World:
    world = deepcopy(world)
    for entry in _named(world, "Node", nodes):
        entry["spec"]["unschedulable"] = False
    return world


def _let_on(world: World, marks: Sequence[str]) -> World:
    """Let the pod tolerate taints of nodes."""
    world = deepcopy(world)
    for item in _named(world, "Pod", ("p",)):
        item["spec"]["tolerations"] += _tolerations(marks)
    return world


def _labelled(world: World, nodes: Sequence[str]) -> World:
    """Give a node the labels that the pod selects."""
    world = deepcopy(world)
    (expected,) = _named(world, "Pod", ("p",))
    for item in _named(world, "Node", nodes):
        item["metadata"]["labels"] |= expected["spec"]["nodeSelector"]
    return world


def _tolerating(world: World, marks: Sequence[str], where: str) -> World:
    """Add tolerations to the requests that are named, and to no others."""
    world = deepcopy(world)
    expected = set(_requests(where))
    for obj in world:
        name = obj["metadata"]["name"]
        for request in obj["spec"]["devices"]["requests"] if _is_claim(obj) else ():
            owned = [(request["name"], request.get("exactly"))]
            owned += [
                (f"{request['name']}/{one['name']}", one)
                for one in request.get("firstAvailable", ())
            ]
            for full, one in owned:
                if one is not None and expected & {(full, ""), (full, name)}:
                    one["tolerations"] = [*one.get("tolerations", ()), *_tolerations(marks)]
    return world


def _is_claim(obj: Obj) -> bool:
    return bool(obj["kind"] == "ResourceClaim")


def _requests(where: str) -> Iterator[tuple[str, str]]:
    """Yield the requests that words name, with their claim if they name that as well."""
    for part in re.split(r"(?:, | and )(?=request )", where):
        text = part.removeprefix("request ")
        names, _, claims = text.partition(" of claim ")
        for name in re.split(r", | and ", names):
            for claim in re.split(r", | and ", claims):
                yield name, claim.partition("/")[2]


def _without_taints(world: World, origins: Sequence[str]) -> World:
    """Remove taints at their sources."""
    world = deepcopy(world)
    for item in origins:
        mark, _, origin = item.partition(" from ")
        noun, _, name = origin.partition(" ")
        if noun == "rule":
            gone = list(_named(world, "DeviceTaintRule", (name,)))
            world = [one for one in world if one not in gone]
        for one in _named(world, "ResourceSlice", (name,)) if noun == "slice" else ():
            for device in one["spec"]["devices"]:
                device["taints"] = [x for x in device["taints"] if _mark(x) != mark]
        for one in _named(world, "ResourceSlicePatch", (name,)) if noun == "patch" else ():
            owned = one["spec"]["devices"]
            owned["taints"] = [x for x in owned["taints"] if _mark(x) != mark]
    return world


def _mark(taint: Obj) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _given_back(world: World, claims: Sequence[str]) -> World:
    """Let the users of claims go, and the claims."""
    names = [claim.partition("/")[2] for claim in claims]
    owned = list(_named(world, "ResourceClaim", names))
    rest = [obj for obj in world if obj not in owned]
    return without(rest, [one["name"] for item in owned for one in item["status"]["reservedFor"]])


def without(world: World, pods: Sequence[str]) -> World:
    """Let pods go, and the devices that only they have."""
    world = deepcopy(world)
    gone = list(_named(world, "Pod", pods))
    for entry in filter(_is_claim, world):
        users = entry["status"]["reservedFor"]
        entry["status"]["reservedFor"] = [one for one in users if one["name"] not in pods]
        if users and not entry["status"]["reservedFor"]:
            del entry["status"]["allocation"]
    return [obj for obj in world if obj not in gone]
