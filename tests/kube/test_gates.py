"""Feature gates that are off: every command shows that nothing acts, by their names.

All combinations on `sully up`, on the stand-in for Kubernetes and on the real one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import manifests
from e2e.watching import until
from kube.control_plane import VARIABLE, control_plane, missing
from kube.process import Foreign, foreign
from kube.scenes import DRIVER, Scene
from sully.testing.cluster import process

Obj = dict[str, Any]
TAINTS, RULES = "DRADeviceTaints", "DRADeviceTaintRules"
ATTRIBUTES = "DRAAdminControlledDeviceAttributes"
SULLY, STAND_IN, REAL = "sully", "stand-in", "kubernetes"
MARKS = {
    SULLY: [pytest.mark.e2e],
    STAND_IN: [pytest.mark.e2e],
    REAL: [pytest.mark.e2e, pytest.mark.kube],
}
OF_KUBERNETES: tuple[tuple[str, ...], ...] = ((), (RULES,), (TAINTS, RULES))
COMBINATIONS = {
    SULLY: [*OF_KUBERNETES, *((*off, ATTRIBUTES) for off in OF_KUBERNETES)],
    STAND_IN: OF_KUBERNETES,
    REAL: OF_KUBERNETES,
}
"""Rules need taints, so those are not off alone."""
CASES = [
    pytest.param((server, off), id="-".join((server, *off)), marks=MARKS[server])
    for server, combinations in COMBINATIONS.items()
    for off in combinations
]
DEVICE = f"{DRIVER}/n1/gpu-0"
RULE_PATH = "/apis/resource.k8s.io/v1/devicetaintrules"
PATCH_PATH = "/apis/resource.k8s.io/v1alpha3/resourceslicepatches"
SELECTOR = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}
RULE = {"deviceSelector": SELECTOR, "taint": {"key": "example.com/hot", "effect": "NoExecute"}}
PATCH = {"devices": {"filter": SELECTOR, "attributes": {f"{DRIVER}/slow": {"bool": True}}}}
TOLERATED = [{"operator": "Exists"}]


@contextmanager
def server_with(kind: str, off: tuple[str, ...], folder: Path) -> Iterator[tuple[Foreign, Scene]]:
    """Run a server with these gates off, and objects that need them.

    Those of Sully's server were written while the gates were on.
    """
    gates = ",".join(f"{gate}=false" for gate in off)
    flags = ("--feature-gates", gates) if gates else ()
    if kind == SULLY:
        with process(data_dir=folder) as up:
            scene = furnished(Foreign(up.data_dir, up.url))
            scene.make(PATCH_PATH, manifests.body("ResourceSlicePatch", "slow", PATCH))
            until(scene.admin, RULE_PATH, lambda rules: bool(rules["r"]["status"]))
        with process(*flags, data_dir=folder) as up:
            yield Foreign(up.data_dir, up.url), scene
    elif kind == STAND_IN:
        with foreign(*flags) as there:
            yield there, furnished(there)
    else:
        if reason := missing():
            pytest.skip(reason)
        programs = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
        more = dict.fromkeys(programs, [f"--feature-gates={gates}"] if gates else [])
        with control_plane(Path(os.environ[VARIABLE]), flags=more) as there:
            yield there, furnished(there)


def furnished(there: Foreign) -> Scene:
    """Make a pod on a device that a rule selects, and that tolerates it."""
    scene = Scene(there)
    scene.start("p", "default-scheduler", tolerations=TOLERATED)
    scene.make(RULE_PATH, manifests.body("DeviceTaintRule", "r", RULE))
    return scene


@dataclass(frozen=True)
class World:
    """A server, and the gates that are off."""

    there: Foreign
    kind: str
    off: tuple[str, ...]

    @property
    def lacking(self) -> list[str]:
        """Return the gates that rules lack; none: rules have an effect."""
        return [gate for gate in (TAINTS, RULES) if gate in self.off]

    def sully(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command; return all that it prints."""
        done = self.there.sully(*arguments)
        assert done.returncode in codes, (arguments, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def check(self, text: str) -> None:
        """Check that a text contains that rules have no effect, why, and a remedy; or nothing."""
        names, flags = " and ".join(self.lacking), ",".join(f"{x}=true" for x in self.lacking)
        where = "this server" if self.kind == SULLY else "kube-apiserver"
        be = "are" if len(self.lacking) > 1 else "is"
        if self.lacking:
            assert f"{names} {be} disabled in {where}" in text
            assert f"--feature-gates={flags}" in text
        else:
            assert RULES not in text


@pytest.fixture(scope="module", params=CASES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run each server with each combination."""
    kind, off = request.param
    with server_with(kind, off, tmp_path_factory.mktemp("data")) as (there, _):
        yield World(there, kind, off)


def test_the_gates_are_published_as_kubernetes_does_it(world: World) -> None:
    page = world.there.admin().request("GET", "/metrics").body.decode()

    for gate in (TAINTS, RULES):
        value = float(gate not in world.off)
        series = f'kubernetes_feature_enabled{{name="{gate}",stage=""}} '
        assert [
            float(x.removeprefix(series)) for x in page.splitlines() if x.startswith(series)
        ] == [value]


def test_devices_have_only_taints_that_are_in_effect(world: World) -> None:
    reported = world.sully("devices")

    world.check(reported)
    assert ("rule/r" in reported) == (not world.lacking)


def test_patched_values_are_shown_if_they_are_in_effect(world: World) -> None:
    reported = world.sully("devices", DEVICE, "-o", "wide")

    applied = world.kind == SULLY and ATTRIBUTES not in world.off
    assert (f"{DRIVER}/slow=true (patch/slow)" in reported) == applied
    ignored = world.kind == SULLY and not applied
    assert ("(patch/slow: no effect)" in reported) == ignored
    assert (f"feature gate {ATTRIBUTES} is disabled in this server" in reported) == ignored


def test_evictions(world: World) -> None:
    reported = world.sully("evictions")

    world.check(reported)
    assert ("inactive" in reported) == bool(world.lacking)


@pytest.mark.parametrize("name", [("rule", "r"), ("device", "gpu-0"), ("pod", "team/p")], ids=str)
def test_explanations(world: World, name: tuple[str, str]) -> None:
    reported = world.sully("explain", *name)

    world.check(reported)
    assert ("no effect" in reported) == bool(world.lacking)


def test_a_status_that_nothing_updates_is_stale(world: World) -> None:
    stale = world.kind == SULLY and bool(world.lacking)

    assert ("Its status is stale" in world.sully("explain", "rule", "r")) == stale


def test_plans(world: World) -> None:
    reported = world.sully("plan", "device", DEVICE, "example.com/new:NoExecute", "-o", "json")

    world.check(reported)
    plan = json.loads(reported[reported.index("{") : reported.rindex("}") + 1])
    assert bool(plan["devices"]) == (not world.lacking)
    assert bool(plan["noEffects"]) == bool(world.lacking)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_taint_and_untaint(world: World, effect: str) -> None:
    added = world.sully("taint", "device", DEVICE, f"example.com/x:{effect}", "-y")
    removed = world.sully("untaint", "device", DEVICE, f"example.com/x:{effect}", "-y")

    world.check(added)
    world.check(removed)
    assert ("created" in added, "deleted" in removed) == (True, True)


def test_pause_and_resume(world: World) -> None:
    refused = bool(world.lacking) or world.kind != SULLY
    paused = world.sully("evictions", "pause", "r", codes=(1,) if refused else (0,))
    forced = world.sully("evictions", "pause", "r", "--force")
    resumed = world.sully("evictions", "resume", "r")

    for text in (paused, forced, resumed):
        world.check(text)
    assert ("cannot pause" in paused) == refused
    assert "r resumed" in resumed


def test_capabilities(world: World) -> None:
    document = json.loads(world.sully("capabilities", "-o", "json"))
    table = world.sully("capabilities")

    gates = {gate: gate not in world.off for gate in (TAINTS, RULES)}
    patches = ATTRIBUTES not in world.off if world.kind == SULLY else None
    assert document["featureGates"] == {**gates, ATTRIBUTES: patches}
    for gate, enabled in gates.items():
        line = next(x for x in table.splitlines() if x.startswith(f"{gate} "))
        assert line.split()[1] == ("enabled" if enabled else "disabled")
        assert ("have an effect" in line) == enabled
