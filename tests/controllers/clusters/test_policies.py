"""Policies turn further conditions into taints, with delays, and touch nobody else's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import manifests
from controllers.clusters.hubbing import CLUSTERS, POLICY, HubWorld, joined
from controllers.world import Obj
from sully.api.cluster.taints.policy_states import STATES
from sully.api.cluster.taints.policy_taints import OWNED
from sully.api.resource.annotations import CLEARED_AT
from sully.client.transport import Key
from sully.machinery.formats.timestamps import format_micro_time

SLOW = "example.com/Slow"
TAINT = "example.com/slow:PreferNoSelect"


@pytest.fixture
def hub() -> HubWorld:
    """Return a hub; OCM has no policies."""
    return HubWorld()


def rule(taint: str = "example.com/slow", status: str = "True", **delays: int) -> Obj:
    return {
        "condition": {"type": SLOW, "status": status},
        "taint": {"key": taint, "effect": "PreferNoSelect"},
        **delays,
    }


async def policy(hub: HubWorld, *rules: Obj, name: str = "p", **spec: Any) -> None:
    await hub.admin.create(POLICY, manifests.cluster_policy(name, *rules, **spec))
    await hub.calm()


async def applied(hub: HubWorld) -> tuple[str, str, str]:
    await hub.pass_time(1)
    result = await hub.admin.get(POLICY, Key("", "p"))
    (only,) = result["status"]["conditions"]
    return only["status"], only["reason"], only["message"]


async def test_a_condition_sets_its_taint_and_clears_it(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await policy(hub, rule())

        await hub.report("c1", "True", SLOW)
        assert await hub.taints("c1") == [TAINT]
        await hub.report("c1", "False", SLOW)

        assert await hub.taints("c1") == []
        assert OWNED not in (await hub.cluster("c1"))["metadata"].get("annotations", {})


async def test_delays_are_kept_to_the_second(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub, leaseDurationSeconds=600)
        await policy(hub, rule(setAfterSeconds=30, clearAfterSeconds=60))

        await hub.report("c1", "True", SLOW)
        since = _whole(hub)
        await hub.until(since + timedelta(seconds=29.999))
        assert await hub.taints("c1") == []
        await hub.until(since + timedelta(seconds=30))
        assert await hub.taints("c1") == [TAINT]

        await hub.pass_time(100)
        await hub.report("c1", "False", SLOW)
        since = _whole(hub)
        await hub.until(since + timedelta(seconds=59.999))
        assert await hub.taints("c1") == [TAINT]
        await hub.until(since + timedelta(seconds=60))
        assert await hub.taints("c1") == []


def _whole(hub: HubWorld) -> Any:
    """Return when a condition that was just reported changed: its time has whole seconds."""
    return (hub.clock.now() - timedelta(seconds=0.5)).replace(microsecond=0)


async def test_a_condition_that_does_not_last_does_nothing(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await policy(hub, rule(setAfterSeconds=30))
        await hub.report("c1", "True", SLOW)
        await hub.pass_time(20)

        await hub.report("c1", "False", SLOW)
        await hub.pass_time(40)

        assert await hub.taints("c1") == []


async def test_a_policy_that_is_deleted_takes_its_taints_along(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub, taints=[{"key": "mine", "effect": "NoSelect"}])
        await policy(hub, rule())
        await hub.report("c1", "True", SLOW)
        assert await hub.taints("c1") == ["mine:NoSelect", TAINT]

        await hub.admin.delete(POLICY, Key("", "p"))
        await hub.calm()

        assert await hub.taints("c1") == ["mine:NoSelect"]


async def test_what_was_recorded_outlives_a_restart(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await policy(hub, rule())
        await hub.report("c1", "True", SLOW)
    await hub.admin.delete(POLICY, Key("", "p"))

    async with hub.hub():
        assert await hub.taints("c1") == []


async def test_a_taint_of_another_user_is_never_taken_away(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub, taints=[{"key": "example.com/slow", "effect": "PreferNoSelect"}])
        await policy(hub, rule())

        await hub.report("c1", "True", SLOW)
        await hub.report("c1", "False", SLOW)

        assert await hub.taints("c1") == [TAINT]


async def test_only_selected_clusters(hub: HubWorld) -> None:
    async with hub.hub():
        for name, env in (("c1", "prod"), ("c2", "dev")):
            await joined(hub, name, metadata={"labels": {"env": env}})
        await policy(hub, rule(), clusterSelector={"matchLabels": {"env": "prod"}})

        for name in ("c1", "c2"):
            await hub.report(name, "True", SLOW)

        assert (await hub.taints("c1"), await hub.taints("c2")) == ([TAINT], [])
        assert await applied(hub) == ("True", "Applied", "1 clusters selected, 1 tainted.")


async def test_health_and_policies_do_not_disturb_each_other(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await policy(hub, rule())

        await hub.report("c1", "True", SLOW)
        await hub.report("c1", "False")

        assert sorted(await hub.taints("c1")) == [
            "cluster.open-cluster-management.io/unavailable:NoSelect",
            TAINT,
        ]


STATUSES: dict[str, tuple[Obj, tuple[str, str, str]]] = {
    "for all": ({}, ("True", "Applied", "1 clusters selected, 0 tainted.")),
    "for none": (
        {"clusterSelector": {"matchLabels": {"x": "y"}}},
        ("False", "NoCluster", "0 clusters selected, 0 tainted."),
    ),
    "without selector": (
        {"clusterSelector": None},
        (
            "False",
            "NoSelector",
            "There is no clusterSelector, so the policy is for no cluster.",
        ),
    ),
}


@pytest.mark.parametrize(("spec", "want"), STATUSES.values(), ids=STATUSES)
async def test_status(hub: HubWorld, spec: Obj, want: tuple[str, str, str]) -> None:
    async with hub.hub():
        await joined(hub)

        await policy(hub, rule(), **spec)

        assert await applied(hub) == want


async def test_a_policy_that_is_rewritten_counts_immediately(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await policy(hub, rule())
        await hub.report("c1", "True", SLOW)

        await hub.admin.patch(POLICY, Key("", "p"), {"spec": {"rules": [rule("other")]}})
        await hub.calm()

        assert await hub.taints("c1") == ["other:PreferNoSelect"]


async def _conditions(hub: HubWorld) -> dict[str, tuple[str, str]]:
    await hub.pass_time(1)
    conditions = (await hub.admin.get(POLICY, Key("", "p")))["status"]["conditions"]
    return {one["type"]: (one["status"], one["message"]) for one in conditions}


async def test_clusters_over_the_limit_wait_until_another_recovers(hub: HubWorld) -> None:
    async with hub.hub():
        for name in ("c1", "c2", "c3"):
            await joined(hub, name)
            await hub.report(name, "True", SLOW)
        # All of them are due together, before the informer has seen the first write.
        await policy(hub, rule(), maxUnavailable="33%")

        tainted = [name for name in ("c1", "c2", "c3") if await hub.taints(name)]
        assert len(tainted) == 1
        status, message = (await _conditions(hub))["sully.dev/HeldBack"]
        assert status == "True"
        assert message.startswith("2 clusters wait, for instance c")
        assert message.endswith(": 1 of 1 clusters of the policy unavailable.")

        await hub.report(tainted[0], "False", SLOW)
        assert await hub.taints(tainted[0]) == []
        assert sum([bool(await hub.taints(name)) for name in ("c1", "c2", "c3")]) == 1

        await hub.admin.patch(POLICY, Key("", "p"), {"spec": {"maxUnavailable": None}})
        await hub.calm()
        assert sum([bool(await hub.taints(name)) for name in ("c1", "c2", "c3")]) == 2
        assert (await _conditions(hub))["sully.dev/HeldBack"] == ("False", "")


async def test_a_deleted_cluster_lets_another_be_tainted(hub: HubWorld) -> None:
    async with hub.hub():
        for name in ("c1", "c2"):
            await joined(hub, name)
        await policy(hub, rule(), maxUnavailable=1)
        for name in ("c1", "c2"):
            await hub.report(name, "True", SLOW)
        assert (await hub.taints("c1"), await hub.taints("c2")) == ([TAINT], [])

        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.calm()

        assert await hub.taints("c2") == [TAINT]


async def test_a_flapping_cluster_keeps_its_taint_until_a_user_clears_it(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub, leaseDurationSeconds=600)
        await policy(hub, rule(), flaps={"count": 2, "within": "1h"})
        for status in ("True", "False", "True", "False"):
            await hub.report("c1", status, SLOW)
            await hub.pass_time(2)

        assert await hub.taints("c1") == [TAINT]
        assert (await _conditions(hub))["sully.dev/Flapping"] == (
            "True",
            "1 clusters keep their taint, for instance c1: needs the annotation"
            " sully.dev/cleared-at with the current time once it is healthy.",
        )

    async with hub.hub():
        assert await hub.taints("c1") == [TAINT]
        await hub.annotate("c1", **{CLEARED_AT: format_micro_time(hub.clock.now())})

        assert await hub.taints("c1") == []
        assert STATES not in (await hub.cluster("c1"))["metadata"]["annotations"]
        assert (await _conditions(hub))["sully.dev/Flapping"] == ("False", "")


async def test_one_clock_for_two_statuses_outlives_a_restart(hub: HubWorld) -> None:
    both = rule(setAfterSeconds=30)
    both["condition"] |= {"status": "False", "orStatuses": ["Unknown"]}
    async with hub.hub():
        await joined(hub, leaseDurationSeconds=600)
        await policy(hub, both)
        await hub.report("c1", "False", SLOW)
        await hub.pass_time(20)
    async with hub.hub():
        await hub.report("c1", "Unknown", SLOW)
        assert await hub.taints("c1") == []
        await hub.pass_time(12)

        assert await hub.taints("c1") == [TAINT]


async def test_what_policies_record_is_deleted_with_them(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await policy(hub, rule(), maxUnavailable=0)
        await hub.report("c1", "True", SLOW)
        assert STATES in (await hub.cluster("c1"))["metadata"]["annotations"]

        await hub.admin.delete(POLICY, Key("", "p"))
        await hub.calm()

        assert STATES not in (await hub.cluster("c1"))["metadata"].get("annotations", {})
