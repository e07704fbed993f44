"""The hub in a running control plane: with the rights its controllers have, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sully.app import Config, RunningControlPlane, running
from sully.client.direct import DirectTransport
from sully.client.transport import Key
from sully.controllers.clusters.kinds import CLUSTER_ROLE_BINDINGS
from sully.domain.clusters.rights import agent_user
from sully.domain.simulated.clusters import SIMULATE_UNREACHABLE, Members, name_of
from sully.machinery.compat import Compat
from sully.machinery.errors import Forbidden
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.authorization.enforce import refusal
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.testing.patience import PATIENCE
from sully.views.fleet_kinds import CLUSTERS

WHOLE = CLUSTERS.read_as(dict)
NAME = name_of(0)


def _refusals(plane: RunningControlPlane) -> list[str]:
    """Return a list that will hold whatever a user is refused from now on."""
    results: list[str] = []
    authorizer: Any = plane.api.authorizer
    authorize = authorizer.authorize

    def listening(user: User, attributes: Attributes) -> Decision:
        decision: Decision = authorize(user, attributes)
        # Who may not do these is asked next whether he has what he gives.
        if not decision.allowed and attributes.verb not in ("bind", "escalate"):
            results.append(str(refusal(user, attributes, decision)))
        return decision

    authorizer.authorize = listening
    return results


async def _until(admin: DirectTransport, status: str) -> dict[str, Any]:
    """Wait until the first cluster has an availability."""
    async for event in admin.watch(WHOLE):
        result = event.object or {}
        conditions = result.get("status", {}).get("conditions", [])
        results = {condition["type"]: condition["status"] for condition in conditions}
        ours = result.get("metadata", {}).get("name") == NAME
        if ours and results.get("ManagedClusterConditionAvailable") == status:
            return result
    raise AssertionError("the watch ended")


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True], ids=["sully", "reference"])
async def test_everybody_has_what_he_needs(tmp_path: Path, *, strict: bool) -> None:
    config = Config(
        data_dir=tmp_path,
        port=0,
        store="memory",
        compat=Compat.KUBERNETES if strict else Compat.SULLY,
        simulated_clusters=Members(1, 1),
    )
    async with running(config) as plane, asyncio.timeout(PATIENCE):
        refused, admin = _refusals(plane), DirectTransport(plane.direct())
        await _until(admin, "True")
        annotations: dict[str, Any] = {SIMULATE_UNREACHABLE: "true"}
        key = Key("", NAME)
        await admin.patch(WHOLE, key, {"metadata": {"annotations": annotations}})
        await _until(admin, "Unknown")
        await admin.patch(WHOLE, key, {"metadata": {"annotations": {SIMULATE_UNREACHABLE: None}}})
        await _until(admin, "True")
        await admin.delete(WHOLE, key)
        async for event in admin.watch(CLUSTER_ROLE_BINDINGS):
            name = (event.object or {}).get("metadata", {}).get("name", "")
            if event.type == "DELETED" and name.endswith(NAME):
                break

        assert refused == []


async def test_an_agent_may_report_on_its_own_cluster_only(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path, port=0, store="memory", simulated_clusters=Members(2))
    async with running(config) as plane, asyncio.timeout(PATIENCE):
        await _until(DirectTransport(plane.direct()), "True")
        name, groups = agent_user(NAME, "test")
        agent = DirectTransport(InProcess(plane.api, User(name, groups)))

        await agent.get(WHOLE, Key("", NAME))
        with pytest.raises(Forbidden):
            await agent.get(WHOLE, Key("", name_of(1)))
        patch: dict[str, Any] = {"status": {"conditions": []}}
        with pytest.raises(Forbidden):
            await agent.patch(WHOLE, Key("", name_of(1)), patch, subresource="status")
        with pytest.raises(Forbidden):
            await agent.patch(WHOLE, Key("", NAME), {"spec": {"taints": None}})
