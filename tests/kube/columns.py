"""The servers of the table in docs/guides/kubernetes.md, and a cluster for its commands.

A column of the table is a server: plain Kubernetes, with Sully installed beside it, with Sully's
evictor instead of its own, and Sully's. Plain ones are simulated; those of 1.37 can be real, too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import manifests
from architecture.project import ROOT
from e2e.beside import APPLY, LEASE, as_account
from e2e.watching import until
from kube.control_plane import VARIABLE, control_plane
from kube.process import Foreign, foreign
from kube.scenes import DRIVER, Scene
from sully.testing.cluster import process
from sully.testing.remote import controllers

Obj = dict[str, Any]
OLD, PLAIN, INSTALLED, EVICTS, SULLY = (
    "plain 1.36",
    "plain 1.37",
    "after `sully install`",
    "where Sully evicts",
    "Sully's server",
)
"""The titles of the columns."""
GUIDE = ROOT / "docs/guides/kubernetes.md"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
PATCHES = {
    True: "/apis/resource.k8s.io/v1alpha3/resourceslicepatches",
    False: "/apis/sully.dev/v1alpha1/resourceslicepatches",
}
"""Where patches are, by whether the server is Sully's."""


class Cell(NamedTuple):
    """What a command does on a server."""

    command: str
    title: str
    text: str


def cells() -> Iterator[Cell]:
    """Read the table of the guide."""
    lines = iter(GUIDE.read_text().splitlines())
    head = next(line for line in lines if line.startswith("| command |"))
    titles = _row(head)[1:]
    assert titles == [OLD, PLAIN, INSTALLED, EVICTS, SULLY]
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        command, *texts = _row(line)
        yield from (Cell(command, *pair) for pair in zip(titles, texts, strict=True))


def _row(line: str) -> list[str]:
    return [text.strip() for text in line.strip("|").split("|")]


def rule(name: str, device: str) -> Obj:
    """Return a rule that evicts pods from a device."""
    selector = {"driver": DRIVER, "pool": "n1", "device": device}
    return manifests.rule(name, "NoExecute", key="example.com/hot", selector=selector)


def patch(name: str, *, own: bool) -> Obj:
    """Return a patch with an attribute and a taint."""
    devices = {
        "filter": {"driver": DRIVER, "pool": "n1", "device": "gpu-2"},
        "attributes": {f"{DRIVER}/slow": {"bool": True}},
        "taints": [{"key": f"example.com/{name}", "effect": "NoExecute"}],
    }
    version = "resource.k8s.io/v1alpha3" if own else "sully.dev/v1alpha1"
    return manifests.patch(name, devices) | {"apiVersion": version}


POLICY = manifests.body(
    "DeviceTaintPolicy",
    "faulty",
    {
        "selector": {"driver": DRIVER},
        "sources": [{"name": "ecc", "driverTaint": {"key": "example.com/ecc"}}],
        "taint": {"key": "example.com/faulty"},
        "steps": [{"effect": "NoSchedule"}],
    },
)
"""A policy that finds no fault."""
DEPLOYMENT = manifests.deployment("new")
"""A workload that fits everywhere."""


@dataclass
class Column:
    """One server, with a node, devices, and a pod on one of them."""

    title: str
    there: Foreign
    scene: Scene
    folder: Path
    """Has the files that commands read."""

    @property
    def patches(self) -> str:
        """Return where patches are."""
        return PATCHES[self.title == SULLY]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command where its files are."""
        return self.there.sully(*arguments, cwd=self.folder)

    def reset(self) -> None:
        """Leave the rule `hot` and the patch `slow`, as far as the server has such kinds."""
        admin = self.scene.admin
        for path, obj in (
            (RULES, rule("hot", "gpu-1")),
            (self.patches, patch("slow", own=self.title == SULLY)),
        ):
            listed = admin.request("GET", path)
            if listed.code != 200:
                continue
            names = {item["metadata"]["name"] for item in listed.json()["items"]}
            for name in names - {obj["metadata"]["name"]}:
                admin.request("DELETE", f"{path}/{name}")
            if obj["metadata"]["name"] not in names:
                self.scene.make(path, obj)

    def evict(self) -> None:
        """Have the rule evict a pod, and wait until its status has it."""
        if self.scene.admin.request("GET", RULES).code != 200:
            return
        self.scene.wait_until_evicted("db")
        until(
            self.scene.admin,
            RULES,
            lambda rules: any(
                "1 pod" in condition["message"]
                for condition in rules["hot"].get("status", {}).get("conditions", ())
            ),
        )


@contextmanager
def column(title: str, folder: Path, *, real: bool = False) -> Iterator[Column]:
    """Run the server of a column."""
    with ExitStack() as running:
        there = running.enter_context(_server(title, real=real))
        if title in (INSTALLED, EVICTS):
            evictor = "sully" if title == EVICTS else "server"
            done = there.sully(*APPLY, "--evictor", evictor)
            assert done.returncode == 0, done.stderr
            account = as_account(there.admin(), there.kubeconfig, folder / "account")
            flags = ("--evictor", evictor, "--lease", LEASE)
            running.enter_context(controllers(account, *flags)).wait_for("leading since")
        scene = Scene(there, devices=4)
        for name, device in {"web": "gpu-0", "db": "gpu-1"}.items():
            scene.start(name, "default-scheduler")
            assert scene.held(name) == device
        own = title == SULLY
        (folder / "rule.yaml").write_text(yaml.safe_dump(rule("new", "gpu-2")))
        (folder / "deployment.yaml").write_text(yaml.safe_dump(DEPLOYMENT))
        (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
        (folder / "patch.yaml").write_text(yaml.safe_dump(patch("new", own=own)))
        ready = Column(title, there, scene, folder)
        ready.reset()
        ready.evict()
        yield ready


@contextmanager
def _server(title: str, *, real: bool) -> Iterator[Foreign]:
    if title == SULLY:
        with process() as up:
            yield Foreign(up.data_dir, up.url)
        return
    if real:
        without = ("--controllers=*,-device-taint-eviction-controller",) if title == EVICTS else ()
        flags = {"kube-controller-manager": without}
        with control_plane(Path(os.environ[VARIABLE]), flags=flags) as there:
            yield there
        return
    shape = {OLD: ("--minor", "36", "--rules", ""), EVICTS: ("--no-evictor",)}
    with foreign(*shape.get(title, ())) as there:
        yield there
