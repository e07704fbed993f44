"""Every controller in process, with exactly the role that it has by default."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostile.target import Target
from install.identities import IDENTITIES
from server.authorization.world import World
from sully.app import APISERVER
from sully.client.direct import DirectTransport
from sully.client.discovery.resources import of_scheme
from sully.client.transport import Transport
from sully.controller_context import MANAGER, ControllerConfig
from sully.controller_setup import CONTROLLERS, build_manager
from sully.controllers.scheduling.wiring import USER_AGENT as SCHEDULER
from sully.machinery.errors import Forbidden
from sully.machinery.gates import Gates
from sully.runtime.metrics import Metrics
from sully.server.audit.events import DECISION
from sully.server.authorization.attributes import on_target
from sully.server.inprocess import InProcess
from sully.server.requests import Request, User
from sully.testing.cluster import process
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]
ACCOUNT = "system:serviceaccount:kube-system:"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
TURNS = 400
"""ClaimLocks of the loop in which every cache has listed; none waits for anything else."""


def _identity(agent: str) -> User:
    if agent == SCHEDULER:
        return User(f"system:{agent}", ("system:authenticated",))
    return User(f"{ACCOUNT}{agent}", GROUPS)


class Noting(InProcess):
    """The access of one controller, under all of its identities; notes what none of them may."""

    def __init__(self, world: World, agents: tuple[str, ...], refused: list[str]) -> None:
        super().__init__(world.api, _identity(agents[0]))
        self._identities = [_identity(agent) for agent in agents]
        self._authorize = world.api.authorizer.authorize
        self.refused = refused

    def _require(self, verb: str, request: Request) -> None:
        asked = on_target(verb, request.target, request.options)
        if not any(self._authorize(user, asked).allowed for user in self._identities):
            self.refused.append(f"{verb} {request.target.resource.plural}")
            raise Forbidden("not by its role")


@pytest.mark.parametrize("name", CONTROLLERS)
async def test_a_controller_reads_what_its_role_allows(name: str) -> None:
    """One identity reads the caches for all; here each controller reads its own."""
    refused: list[str] = []
    async with World.running() as world:

        def access(agent: str) -> Transport:
            agents = IDENTITIES[name] if agent == MANAGER else (agent,)
            return DirectTransport(Noting(world, agents, refused))

        flags = ControllerConfig(
            transport=access,
            served=of_scheme(world.api.scheme),
            gates=Gates(),
            ids=world.api.writer.ids,
            certificate="a certificate",
            chosen=frozenset((name,)),
        )
        manager = build_manager(flags, world.clock, Metrics())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(manager.run())
            for _ in range(TURNS):
                await asyncio.sleep(0)
            manager.stop()

    assert refused == []


def _eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def _entries(path: Path) -> list[Obj]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_nobody_in_process_is_refused_or_needs_no_role(tmp_path: Path) -> None:
    """Teams, taints, evictions, clusters and namespaces that go: all controllers have work."""
    log = tmp_path / "audit.log"
    arguments = ("--demo", "--simulated-clusters", "2", "--audit-log", str(log))
    with process(*arguments, "--log-level", "error") as up:
        admin = Target(up, tmp_path).admin

        def items(path: str) -> list[Obj]:
            result: list[Obj] = admin.get(path).ok()["items"]
            return result

        clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
        _eventually(lambda: bool(items("/apis/sully.dev/v1alpha1/evictionrecords")))
        _eventually(lambda: len(items(clusters)) == 2)
        admin.delete("/api/v1/namespaces/team-lab")
        _eventually(lambda: admin.get("/api/v1/namespaces/team-lab").code == 404)

    entries = _entries(log)
    # The API server itself is not a controller: like kube-apiserver it writes its own ConfigMap as
    # an identity that needs no role.
    acting = [
        entry
        for entry in entries
        if entry["user"]["username"].startswith("system:")
        and entry["user"]["username"] != APISERVER.name
    ]
    refused = [item for item in acting if item["annotations"].get(DECISION) != "allow"]
    unbound = {
        item["user"]["username"] for item in acting if "system:masters" in item["user"]["groups"]
    }
    assert (refused, unbound) == ([], set())
    assert {"system:kube-scheduler", f"{ACCOUNT}device-taint-eviction-controller"} <= {
        item["user"]["username"] for item in acting
    }
