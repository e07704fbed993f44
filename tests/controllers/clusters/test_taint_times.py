"""`timeAdded` of taints where the server sets it, and where nobody else does."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.clusters.hubbing import (
    AVAILABLE,
    POLICY,
    UNAVAILABLE,
    UNREACHABLE,
    HubWorld,
    joined,
)
from kube.hub import plain_hub

Obj = dict[str, Any]
DISK = "DiskFull"


@pytest.fixture
def plain() -> HubWorld:
    """Return a hub on a server with the definitions of OCM and no webhook."""
    return HubWorld(scheme=plain_hub())


async def times(hub: HubWorld, name: str = "c1") -> dict[str, str]:
    """Return the times of the taints of a cluster, by key."""
    cluster = await hub.cluster(name)
    return {taint["key"]: taint.get("timeAdded", "") for taint in cluster["spec"].get("taints", ())}


async def test_health_taint(plain: HubWorld) -> None:
    async with plain.hub(sets_taint_times=None):
        await joined(plain)
        await plain.pass_time(60)
        await plain.report("c1", "False")
        first = await times(plain)
        await plain.pass_time(60)
        await plain.renew("c1")
        await plain.report("c1", "Unknown")

        assert first.keys() == {UNAVAILABLE}
        assert (await times(plain)).keys() == {UNREACHABLE}
        assert (await times(plain))[UNREACHABLE] == first[UNAVAILABLE] > ""


async def test_policy_taint_keeps_its_time(plain: HubWorld) -> None:
    rule = {
        "condition": {"type": DISK, "status": "True"},
        "taint": {"key": "disk-full", "effect": "NoSelect"},
    }
    policy = {"metadata": {"name": "disk"}, "spec": {"clusterSelector": {}, "rules": [rule]}}
    async with plain.hub(sets_taint_times=None):
        await plain.admin.create(POLICY, policy)
        await joined(plain)
        await plain.report("c1", "True", DISK)
        before = await times(plain)
        await plain.pass_time(60)

        await plain.report("c1", "False", AVAILABLE)

        after = await times(plain)
        assert before.keys() == {"disk-full"}
        assert after["disk-full"] == before["disk-full"] > ""
        assert after[UNAVAILABLE] > before["disk-full"]


async def test_taints_of_users_get_a_time_and_keep_it(plain: HubWorld) -> None:
    """A manifest that is applied again has no times: they must not start again."""
    manifest = [{"key": "maintenance", "effect": "NoSelect"}]
    async with plain.hub(sets_taint_times=None):
        await joined(plain)
        await plain.change("c1", taints=manifest)
        before = await times(plain)
        await plain.pass_time(60)

        await plain.change("c1", taints=manifest)
        again = await times(plain)
        await plain.change("c1", taints=None)
        await plain.change("c1", taints=manifest)

        assert before["maintenance"] > ""
        assert again == before
        assert (await times(plain))["maintenance"] > before["maintenance"]


async def test_time_that_a_user_set_stays(plain: HubWorld) -> None:
    mine = [{"key": "m", "effect": "NoSelect", "timeAdded": "2020-01-01T00:00:00Z"}]
    async with plain.hub(sets_taint_times=None):
        await joined(plain, taints=mine)
        await plain.report("c1", "False")

        assert (await times(plain))["m"] == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("known", [True, None], ids=["known", "found out"])
async def test_server_that_sets_times(hub: HubWorld, known: bool | None) -> None:
    """OCM refuses a new taint that comes with a time, so none is sent."""
    async with hub.hub(sets_taint_times=known):
        await joined(hub)
        await hub.report("c1", "False")
        await hub.pass_time(30)
        await hub.renew("c1")
        await hub.report("c1", "Unknown")

        assert (await times(hub)).keys() == {UNREACHABLE}
        assert (await times(hub))[UNREACHABLE] > ""


async def test_server_that_begins_to_set_times() -> None:
    """A refused write is retried without times: the webhook of OCM was installed meanwhile."""
    strict = HubWorld(strict=True)
    async with strict.hub(sets_taint_times=False):
        await joined(strict)
        await strict.report("c1", "False")
        await strict.pass_time(5)

        assert (await times(strict)).keys() == {UNAVAILABLE}
        assert (await times(strict))[UNAVAILABLE] > ""
