"""Files that hold anything: a command shows what is wrong with which object, and never trips."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.cli.main import main

PLANS = Path(__file__).parent / "plans"
CLUSTER = yaml.safe_load((PLANS / "cluster.yaml").read_text())
Place = tuple[str | int, ...]

COMMANDS = [
    ["devices", "-o", "wide"],
    ["evictions"],
    ["history"],
    ["plan", "device", "*", "example.com/hot:NoExecute"],
    ["plan", "cluster", "*", "maintenance:NoSelect"],
    ["plan", "-f", str(PLANS / "rule.yaml")],
    ["plan", "-f", str(PLANS / "classes.yaml")],
    ["explain", "pod", "web-1", "-n", "a"],
    ["explain", "device", "gpu.example.com/node-1/gpu-0"],
    ["explain", "placement", "front", "-n", "shop"],
]
VALUES: list[Any] = [
    *(None, True, 3, -1, 2.5, 10**30, "", "x", "\ud800"),
    *([], {}, [None], ["x"], [{}], {"x": None}, {"x": 3}),
]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield where values stand, also those within others."""
    if at:
        yield at
    if isinstance(value, dict | list):
        for name, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(entry, (*at, name))


def broken(place: Place, value: Any) -> str:
    """Return the cluster with another value somewhere."""
    result = copy.deepcopy(CLUSTER)
    inner = result["items"]
    for item in place[:-1]:
        inner = inner[item]
    inner[place[-1]] = value
    return json.dumps(result)


def run(*arguments: str) -> tuple[int, str]:
    io = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(io):
        return main(list(arguments)), io.getvalue()


def at(kind: str, *place: str | int) -> Place:
    """Return a place in the first object of a kind."""
    numbers = (number for number, entry in enumerate(CLUSTER["items"]) if entry["kind"] == kind)
    return (next(numbers), *place)


CONTAINER = at("Pod", "spec", "containers", 0)
BROKEN: dict[str, tuple[Any, Any, str]] = {
    "nothing for a container": (CONTAINER, None, "Pod a/web-1: spec.containers[0]: an object"),
    "an amount that is none": (
        at("Node", "status", "allocatable", "cpu"),
        "much",
        "Node node-1: status.allocatable.cpu: an amount such as",
    ),
    "an amount that no server writes": (
        at("Node", "status", "allocatable", "cpu"),
        8,
        'Node node-1: status.allocatable.cpu: text such as "2" is expected, not 8',
    ),
    "devices that are not a list": (
        at("ResourceSlice", "spec", "devices"),
        3,
        "ResourceSlice s-node-1: spec.devices: a list is expected, not 3",
    ),
    "a device without a name": (
        at("ResourceSlice", "spec", "devices", 0),
        {},
        "ResourceSlice s-node-1: spec.devices[0].name: it is missing",
    ),
    "a name that is none": (
        at("Pod", "metadata", "name"),
        [3],
        "Pod: metadata.name must be a string",
    ),
}


@pytest.mark.parametrize(("place", "value", "want"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_named(place: Place, value: Any, want: str, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    file.write_text(broken(place, value))

    code, reported = run(*COMMANDS[3], "--snapshot", str(file))

    assert code == 1
    assert reported.startswith(f"error: {file}: ")
    assert want in reported
    assert reported.count("\n") == 1


def test_the_file_of_several(tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    file.write_text(broken(CONTAINER, None))

    _, reported = run(*COMMANDS[3], "--snapshot", str(PLANS / "rule.yaml"), "--snapshot", str(file))

    assert reported.startswith(f"error: {file}: Pod a/web-1: spec.containers[0]: ")


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = TextIOWrapper(BytesIO(broken(CONTAINER, None).encode()))
    monkeypatch.setattr("sys.stdin", stdin)

    _, reported = run(*COMMANDS[3], "--snapshot", "-")

    assert reported.startswith("error: -: Pod a/web-1: spec.containers[0]: ")


@settings(max_examples=examples(100))
@given(
    st.sampled_from(list(places(CLUSTER["items"]))),
    st.sampled_from(VALUES),
    st.sampled_from(COMMANDS),
)
@example(CONTAINER, None, COMMANDS[3])
@example(at("Pod", "spec", "containers", 0, "resources"), -1, COMMANDS[5])
def test_no_file_makes_a_command_trip(
    tmp_path_factory: pytest.TempPathFactory, place: Place, value: Any, arguments: list[str]
) -> None:
    file = tmp_path_factory.mktemp("broken") / "saved.json"
    file.write_text(broken(place, value))

    code, reported = run(*arguments, "--snapshot", str(file))

    assert code in (0, 1, 2, 3)
    if "expected" in reported or "cannot be read" in reported:
        assert str(file) in reported
