"""A Kubernetes server that is not ours: installed on, worked beside, asked by every command.

The server is kube/server.py, a process of its own; `sully controllers` runs as the account that
`sully install` made, with exactly its rights.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cli.terminals import environment, terminal
from e2e.beside import APPLY, LEASE, as_account
from e2e.watching import Named, until
from kube.process import Foreign, foreign
from kube.scenes import DRIVER, MERGE, OURS, PATCHES, PODS, Scene
from manifests import body
from sully.install.manifests import OPTIONAL, manifests
from sully.install.workload import Settings
from sully.testing.remote import CommandProcess, controllers

pytestmark = pytest.mark.e2e

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims"
DEVICE = f"{DRIVER}/n1/gpu-0"
HOT = "example.com/hot:NoExecute"


@dataclass
class World:
    there: Foreign
    scene: Scene
    crew: CommandProcess

    def sully(self, *arguments: str) -> str:
        done = self.there.sully(*arguments)
        assert done.returncode in (0, 3), done.stderr
        return done.stdout

    def refused(self, *arguments: str) -> str:
        done = self.there.sully(*arguments)
        assert done.returncode == 1, (done.stdout, done.stderr)
        return done.stderr


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Run Kubernetes 1.37 with its own evictor and scheduler, and Sully beside them."""
    with foreign() as there:
        done = there.sully(*APPLY)
        assert done.returncode == 0, done.stderr
        config = as_account(there.admin(), there.kubeconfig, there.folder / "account")
        with controllers(config, "--lease", LEASE) as crew:
            crew.wait_for("leading since")
            yield World(there, Scene(there), crew)
            assert crew.stop() == 0
        assert "forbidden" not in "".join(crew.output).lower()


@pytest.fixture(autouse=True)
def _nothing_is_left(world: World) -> Iterator[None]:
    """Remove what a test made, also if it failed: the next one counts rules, pods and devices."""
    yield
    for path in (RULES, PATCHES, f"{PODS}?gracePeriodSeconds=0", CLAIMS):
        assert world.scene.admin.request("DELETE", path).code == 200
        until(world.scene.admin, path.partition("?")[0], lambda result: not result)


def test_the_table_is_printed_on_connecting(world: World) -> None:
    table = world.sully("capabilities").partition("\nFEATURE GATE")[0].splitlines()

    # Only the command knows with which flags it was installed.
    shown = [line for line in table if line and not line.startswith("eviction")]
    assert {f"{line}\n" for line in shown} <= set(world.crew.output)
    assert any(line.startswith("eviction       its own") for line in table)
    assert "(8 controllers, lease sully-system/sully-controllers" in world.crew.output[-1]


def _patch(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    # As a custom resource it is in our group.
    made = body("ResourceSlicePatch", name, spec)
    return made | {"apiVersion": "sully.dev/v1alpha1"}


def test_our_kinds_are_served_as_custom_resources(world: World) -> None:
    path = f"{OURS}/resourceslicepatches"
    wrong = _patch("bad", {"devices": {"priority": "high"}})
    lost = _patch("lost", {"unknown": 1, "devices": {"priority": 1}})

    assert world.scene.admin.request("POST", path, wrong).code == 422
    assert world.scene.make(path, lost)["spec"] == {"devices": {"priority": 1}}
    assert world.scene.admin.request("DELETE", f"{path}/lost").code == 200


def _components(events: Named) -> dict[str, str]:
    """Return who reported about each object."""
    return {
        event["involvedObject"]["name"]: event["reportingComponent"] for event in events.values()
    }


def test_each_scheduler_takes_its_own_pods(world: World) -> None:
    for name, scheduler in {"s-ours": "sully", "s-theirs": "default-scheduler"}.items():
        world.scene.start(name, scheduler)
    # Events are written a moment after what they are about.
    events = until(
        world.scene.admin,
        "/api/v1/namespaces/team/events",
        lambda events: {"s-ours", "s-theirs"} <= set(_components(events)),
    )

    components = _components(events)
    assert (components["s-ours"], components["s-theirs"]) == ("sully", "default-scheduler")
    assert world.scene.held("s-ours") != world.scene.held("s-theirs")


def test_a_device_in_two_claims_is_reported(world: World) -> None:
    """As two schedulers write it that do not see each other's decisions in time."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    for name in ("c-one", "c-two"):
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        world.scene.make(CLAIMS, body)
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        path = f"{CLAIMS}/{name}/status"
        assert world.scene.admin.request("PATCH", path, status, kind=MERGE).code == 200
    events = until(
        world.scene.admin,
        "/api/v1/namespaces/team/events",
        lambda events: {"c-one", "c-two"} <= set(_components(events)),
    )

    assert _components(events)["c-one"] == "device-conflict-controller"
    shown = world.there.sully("devices", DEVICE, "-o", "json")
    (device,) = json.loads(shown.stdout)["devices"]
    assert [claim["name"] for claim in device["conflict"]["claims"]] == ["c-one", "c-two"]
    assert "cannot all use it" in shown.stderr
    assert "Conflict (AllocatedTwice)" in world.sully("explain", "device", DEVICE)


REFUSED = {
    "a rate": (["--rate", "3"], "does not support taint.evictionsPerSecond"),
}


@pytest.mark.parametrize(("flags", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_server_would_drop_is_refused_by_name(
    flags: list[str], text: str, world: World
) -> None:
    reported = world.refused("taint", "device", DEVICE, HOT, "-y", "--no-wait", *flags)
    planned = world.refused("plan", "device", DEVICE, HOT, *flags)

    assert text in reported
    assert text in planned
    assert world.scene.admin.request("GET", RULES).json()["items"] == []


EXPANDED = {
    "a class": ["--class", "gpu"],
    "an expression": ["--cel", f"device.driver == '{DRIVER}'"],
    "a class and an expression": ["--class", "gpu", "--cel", "true"],
}


@pytest.mark.parametrize("flags", EXPANDED.values(), ids=EXPANDED.keys())
def test_what_the_server_cannot_select_by_is_expanded(flags: list[str], world: World) -> None:
    words = ("device", *flags, "example.com/x:NoSchedule")
    reported = world.there.sully("taint", *words, "--name", "all", "--yes")
    rules = world.scene.admin.request("GET", RULES).json()["items"]
    world.sully("untaint", "device", *flags, "example.com/x")

    assert "devices that appear later are not covered by" in reported.stderr
    selectors = [rule["spec"]["deviceSelector"] for rule in rules]
    assert selectors
    assert all({"driver", "pool"} <= selector.keys() for selector in selectors)
    assert all(selector.keys() <= {"driver", "pool", "device"} for selector in selectors)
    assert world.scene.admin.request("GET", RULES).json()["items"] == []


def test_what_the_server_would_drop_of_a_manifest_is_refused_by_name(
    world: World, tmp_path: Path
) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(
        "{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: x}, spec:"
        " {deviceSelector: {deviceClassName: gpu}, taint: {key: a.b/c, effect: NoExecute}}}"
    )

    reported = world.refused("plan", "-f", str(rule))

    assert 'DeviceTaintRule "x": unknown field "spec.deviceSelector.deviceClassName"' in reported


def test_a_rule_from_its_plan_to_its_end(world: World) -> None:
    world.scene.start("tenant", "sully")
    device = f"{DRIVER}/n1/{world.scene.held('tenant')}"
    planned = world.sully("plan", "device", device, HOT)
    assert "1 pod would be evicted" in planned
    flags = ("--name", "hot", "--reason", "fan broken", "--for", "2h", "-y", "--no-wait")
    world.sully("taint", "device", device, HOT, *flags)

    # What the server has no field for, it keeps as annotations.
    made = world.scene.admin.request("GET", f"{RULES}/hot").json()
    assert made["metadata"]["annotations"]["sully.dev/description"] == "fan broken"
    assert "sully.dev/expires-at" in made["metadata"]["annotations"]
    world.scene.wait_until_evicted("tenant")
    pod = world.scene.admin.request("GET", f"{PODS}/tenant").json()
    managers = {entry["manager"] for entry in pod["metadata"]["managedFields"]}
    assert "device-taint-eviction-controller" in managers
    # The record of the rule is ours to write, those of evictions are not: another user evicts.
    _recorded(world, "hot", lambda record: True)
    assert world.scene.admin.request("GET", f"{OURS}/evictionrecords").json()["items"] == []
    assert "rule/hot" in world.sully("devices", "--tainted")
    _check_terminating(world, device)
    assert "fan broken" in world.sully("history", "rule", "hot")
    assert 'cannot pause devicetaintrule "hot"' in world.refused("evictions", "pause", "hot")
    # What the other evictor counts it forgets when it restarts; the record of the rule does not.
    _recorded(world, "hot", lambda record: record["status"].get("evicted") == 1)

    past = {"metadata": {"annotations": {"sully.dev/expires-at": "2020-01-01T00:00:00Z"}}}
    assert world.scene.admin.request("PATCH", f"{RULES}/hot", past, MERGE).code == 200
    until(world.scene.admin, RULES, lambda rules: "hot" not in rules)
    record = _recorded(world, "hot", lambda record: "deletedTime" in record.get("status", {}))
    assert "deleted" in world.sully("history", "rule", "hot")
    assert "1 pod evicted" in world.sully("history", "rule", "hot")
    _stays(world, record)


def _recorded(world: World, rule: str, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until the record of a rule is as wanted; return it. Records outlive their rules."""

    def of_rule(result: Named) -> list[dict[str, Any]]:
        return [item for item in result.values() if item["spec"]["rule"]["name"] == rule]

    path = f"{OURS}/taintrecords"
    (record,) = of_rule(
        until(world.scene.admin, path, lambda result: any(map(done, of_rule(result))))
    )
    return record


def _check_terminating(world: World, device: str) -> None:
    """Check that nobody takes a pod on its way out for one that stays, or that is gone."""
    (seen,) = json.loads(world.sully("evictions", "-o", "json"))["evictions"]
    assert (seen["state"], seen["pending"], seen["terminating"], seen["evicted"]) == (
        "terminating",
        0,
        1,
        1,
    )
    assert [pod["name"] for pod in seen["terminatingPods"]] == ["tenant"]
    rule = json.loads(world.sully("explain", "rule", "hot", "-o", "json"))
    assert (rule["state"], rule["cause"]) == ("Evicting", "PodsTerminating")
    assert "fan broken" in rule["summary"][0]
    pod = json.loads(world.sully("explain", "pod", "team/tenant", "-o", "json"))
    assert (pod["cause"], pod["because"]) == ("EvictedByTaint", ["DeviceTaintRule/hot"])
    document = json.loads(world.sully("explain", "device", device, "-o", "json"))
    assert (document["state"], document["cause"]) == ("InUse", "PodsTerminating")


def test_the_bar_follows_pods_and_not_a_status_that_never_comes(world: World) -> None:
    for name in ("bar-0", "bar-1"):
        world.scene.start(name, "sully")
    done = world.there.sully("taint", "device", f"{DRIVER}/n1", HOT, "--name", "bar", "-y")
    noted = world.there.sully("evictions")

    assert done.returncode == 0, done.stderr
    assert "\n2 pods evicted, 2 still terminating.\n" in done.stdout
    assert "\n  to undo:     kubectl delete devicetaintrule " in done.stdout
    assert "terminating" in noted.stdout


def test_ctrl_c_promises_no_pause_that_no_controller_honors(world: World) -> None:
    # Half a minute more than an hour: a slow machine must not make 59 minutes of it.
    patient = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3630}
    world.scene.start("patient", "sully", tolerations=[patient])
    words = ("taint", "device", f"{DRIVER}/n1", HOT, "--name", "slow", "-y")
    with terminal(*words, env=environment(world.there.kubeconfig)) as screen:
        screen.wait_for(" left")
        screen.interrupt()
        assert screen.end() == 130

    assert " 0/1 pods evicted, about 60m left" in screen.shown
    assert screen.shown.replace("\r", "").endswith(
        "The rule slow remains, and evictions continue.\n"
        "  to watch:   sully evictions --watch\n"
        "  to stop:    kubectl delete devicetaintrule slow\n"
    )


def _stays(world: World, record: dict[str, Any]) -> None:
    """Check that nobody rewrites history here either: the definition forbids it."""
    path = f"{OURS}/taintrecords/{record['metadata']['name']}"
    change = {"spec": {"createdBy": "somebody else"}}
    answer = world.scene.admin.request("PATCH", path, change, MERGE)

    assert answer.code == 422
    assert "cannot be changed" in answer.json()["message"]


def test_a_patch_is_reported_on_and_has_no_effect_on_kubernetes(world: World) -> None:
    taint = {"key": "example.com/dusty", "effect": "NoSchedule"}
    # A server keeps the amount of a custom resource as it was sent, here as a number.
    capacity = {"example.com/memory": {"value": 40}}
    chosen = {"driver": DRIVER, "device": "gpu-2"}
    spec = {"devices": {"filter": chosen, "taints": [taint], "capacity": capacity}}
    world.scene.make(PATCHES, _patch("dusty", spec))
    result = until(world.scene.admin, PATCHES, lambda all_: bool(all_["dusty"].get("status")))
    seen = world.sully("devices")
    reported = world.sully("explain", "patch", "dusty")

    (condition,) = result["dusty"]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("sully.dev/Applied", "True")
    assert "(patch/dusty: no effect)" in seen
    assert "ResourceSlicePatch dusty: Inactive (NotSupported)" in reported


def test_a_snapshot_answers_as_the_server_did(world: World) -> None:
    file = world.there.folder / "saved.yaml"
    world.sully("snapshot", str(file))
    live = json.loads(world.sully("devices", "-o", "json"))
    done = world.there.sully("devices", "-o", "json", "--snapshot", str(file))

    named = [device["device"] for device in live["devices"]]
    assert [device["device"] for device in json.loads(done.stdout)["devices"]] == named
    assert len(named) == 3


def test_every_manifest_is_taken_to_the_last_field(world: World) -> None:
    options = "dryRun=All&fieldManager=test&force=true&fieldValidation=Strict"
    kind = "application/apply-patch+yaml"
    refused = {}
    for entry in manifests_of(Settings(evictor="sully")):
        if entry["kind"] in OPTIONAL:
            continue  # not every server has them
        answer = world.scene.admin.request("PATCH", f"{_place(entry)}?{options}", entry, kind)
        if answer.code not in (200, 201):
            refused[entry["kind"], entry["metadata"]["name"]] = answer.json()["message"]

    assert refused == {}


def manifests_of(settings: Settings) -> list[dict[str, Any]]:
    return [obj for objects in manifests(settings).values() for obj in objects]


def _place(obj: dict[str, Any]) -> str:
    """Return the path of an object; the plural of all these kinds is regular."""
    version, meta = obj["apiVersion"], obj["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{root}{within}/{obj['kind'].lower()}s/{quote(meta['name'], safe='')}"


MONITORS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {
            "kind": "ServiceMonitor",
            "listKind": "ServiceMonitorList",
            "plural": "servicemonitors",
            "singular": "servicemonitor",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                },
            }
        ],
    },
}


def test_it_can_be_installed_again_and_finds_what_is_new(world: World) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    world.scene.make(definitions, MONITORS)
    name = MONITORS["metadata"]["name"]
    until(world.scene.admin, definitions, lambda result: bool(result[name].get("status")))
    again = world.there.sully(*APPLY)

    assert again.returncode == 0, again.stderr
    applied = again.stdout.splitlines()
    records = "customresourcedefinition.apiextensions.k8s.io/taintrecords.sully.dev"
    assert f"{records} serverside-applied" in applied
    assert "servicemonitor.monitoring.coreos.com/sully-controllers serverside-applied" in applied


def test_people_see_our_kinds_with_kubectl(world: World, any_kubectl: Path, tmp_path: Path) -> None:
    taint = {"key": "example.com/far", "effect": "NoSchedule"}
    spec = {"devices": {"priority": 7, "filter": {"pool": "elsewhere"}, "taints": [taint]}}
    body = {"apiVersion": "sully.dev/v1alpha1", "kind": "ResourceSlicePatch"}
    file = tmp_path / "patch.json"
    file.write_text(json.dumps({**body, "metadata": {"name": "far"}, "spec": spec}))

    made = kubectl(any_kubectl, world, "create", "-f", str(file))
    shown = kubectl(any_kubectl, world, "get", "resourceslicepatches.sully.dev", "far")
    gone = kubectl(any_kubectl, world, "delete", "-f", str(file))

    assert (made, gone) == (
        "resourceslicepatch.sully.dev/far created\n",
        'resourceslicepatch.sully.dev "far" deleted\n',
    )
    head, row = (line.split() for line in shown.splitlines())
    assert head == ["NAME", "PRIORITY", "DRIVER", "POOL", "DEVICE", "AGE"]
    # Without a driver and a device there is nothing in those columns.
    assert row[:3] == ["far", "7", "elsewhere"]


def kubectl(program: Path, world: World, *arguments: str) -> str:
    done = subprocess.run(
        [program, "--kubeconfig", world.there.kubeconfig, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(world.there.folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
