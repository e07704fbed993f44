"""Clusters are let in, turned away and cleaned up."""

from __future__ import annotations

import pytest

from controllers.clusters.hubbing import ACCEPTED, CLUSTERS, NAMESPACES, HubWorld
from controllers.world import Obj
from sully.client.transport import Key
from sully.controllers.clusters.kinds import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, ROLES
from sully.domain.clusters.hub import FINALIZER
from sully.domain.clusters.rights import COMMON_ROLE
from sully.machinery.errors import NotFound

ROLE = "open-cluster-management:managedcluster:c1"
BINDING = f"{ROLE}:registration"
OWN = Key("c1", BINDING)
NAME = "open-cluster-management.io/cluster-name"


async def _rights(hub: HubWorld) -> dict[str, Obj | None]:
    return {
        "role": await hub.there(ROLES, "", ROLE),
        "binding": await hub.there(CLUSTER_ROLE_BINDINGS, "", ROLE),
        "own": await hub.there(ROLE_BINDINGS, "c1", BINDING),
    }


async def test_an_accepted_cluster_gets_a_namespace_and_rights(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")

        namespace = await hub.there(NAMESPACES, "", "c1")
        rights = await _rights(hub)
        cluster = await hub.cluster("c1")

        assert namespace is not None
        assert namespace["metadata"]["labels"][NAME] == "c1"
        assert None not in rights.values()
        assert (rights["own"] or {})["roleRef"]["name"] == COMMON_ROLE
        assert cluster["metadata"]["finalizers"] == [FINALIZER]
        assert await hub.condition("c1", ACCEPTED) == (
            "True",
            "HubClusterAdminAccepted",
            "Accepted by hub cluster admin",
        )


async def test_a_cluster_that_was_never_accepted_has_nothing(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1", accepted=False)

        assert await hub.condition("c1", ACCEPTED) is None
        assert await hub.there(NAMESPACES, "", "c1") is None
        assert set((await _rights(hub)).values()) == {None}


async def test_a_denied_cluster_may_only_see_that_it_is(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")

        await hub.change("c1", hubAcceptsClient=False)

        rights = await _rights(hub)
        assert rights["own"] is None
        assert rights["role"] is not None
        assert [rule["verbs"] for rule in rights["role"]["rules"]] == [["get", "list", "watch"]]
        assert await hub.condition("c1", ACCEPTED) == (
            "False",
            "HubClusterAdminDenied",
            "Denied by hub cluster admin",
        )

        await hub.change("c1", hubAcceptsClient=True)

        assert None not in (await _rights(hub)).values()
        assert await hub.status("c1", ACCEPTED) == "True"


@pytest.mark.parametrize("gone", ["role", "binding", "own"])
async def test_rights_that_a_user_removes_come_back(hub: HubWorld, gone: str) -> None:
    kinds = {"role": ROLES, "binding": CLUSTER_ROLE_BINDINGS, "own": ROLE_BINDINGS}
    async with hub.hub():
        await hub.register("c1")
        result = (await _rights(hub))[gone]
        assert result is not None

        at = Key(result["metadata"].get("namespace", ""), result["metadata"]["name"])
        await hub.admin.delete(kinds[gone], at)
        await hub.calm()

        assert (await _rights(hub))[gone] is not None


async def test_rights_that_a_user_widens_are_restored(hub: HubWorld) -> None:
    every: Obj = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    async with hub.hub():
        await hub.register("c1")

        await hub.admin.patch(ROLES, Key("", ROLE), {"rules": [every]})
        await hub.calm()

        result = await hub.there(ROLES, "", ROLE)
        assert result is not None
        assert every not in result["rules"]


@pytest.mark.parametrize("value", ["other", "", None], ids=["another", "empty", "none"])
async def test_a_name_of_the_cluster_that_a_user_changes_is_restored(
    hub: HubWorld, value: str | None
) -> None:
    """Agents, and the hub itself, find what belongs to a cluster by this label."""
    marked = ((NAMESPACES, Key("", "c1")), (ROLES, Key("", ROLE)), (ROLE_BINDINGS, OWN))
    async with hub.hub():
        await hub.register("c1")

        for kind, at in marked:
            await hub.admin.patch(kind, at, {"metadata": {"labels": {NAME: value, "own": "x"}}})
        await hub.calm()

        for kind, at in marked:
            result = await hub.admin.get(kind, at)
            assert result["metadata"]["labels"].items() >= {NAME: "c1", "own": "x"}.items()


async def test_a_namespace_that_was_made_for_it_is_used(hub: HubWorld) -> None:
    await hub.admin.create(NAMESPACES, {"metadata": {"name": "c1", "labels": {NAME: "c1"}}})
    async with hub.hub():
        await hub.register("c1")

        assert await hub.status("c1", ACCEPTED) == "True"
        assert await hub.there(ROLE_BINDINGS, "c1", BINDING) is not None


async def test_the_namespace_of_another_user_is_not_given_away(hub: HubWorld) -> None:
    # The cluster comes first, so that admission has nothing to object to.
    body = {"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": True}}
    await hub.admin.create(CLUSTERS, body)
    await hub.namespace("c1")
    async with hub.hub():
        condition = await hub.condition("c1", ACCEPTED)
        role_binding = await hub.there(ROLE_BINDINGS, "c1", BINDING)
        labels = (await hub.admin.get(NAMESPACES, Key("", "c1")))["metadata"].get("labels") or {}

        assert condition is not None
        if hub.strict:
            assert (condition[0], role_binding is not None, labels.get(NAME)) == (
                "True",
                True,
                "c1",
            )
            return
        assert (condition[:2], role_binding, labels.get(NAME)) == (("False", "Error"), None, None)
        assert 'namespace "c1" exists and is not the namespace of cluster "c1"' in condition[2]

        await hub.admin.patch(NAMESPACES, Key("", "c1"), {"metadata": {"labels": {NAME: "c1"}}})
        await hub.calm()

        assert await hub.status("c1", ACCEPTED) == "True"
        assert await hub.there(ROLE_BINDINGS, "c1", BINDING) is not None


async def test_a_cluster_may_be_called_as_what_all_of_them_share(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")
        shared = await hub.there(ROLES, "", COMMON_ROLE)
        await hub.register("registration")
        both = await hub.there(ROLES, "", COMMON_ROLE)
        await hub.admin.delete(CLUSTERS, Key("", "registration"))
        await hub.calm()

        assert shared is not None
        assert both == await hub.there(ROLES, "", COMMON_ROLE) == shared


async def test_the_end_of_a_cluster_takes_the_rights_and_leaves_the_namespace(
    hub: HubWorld,
) -> None:
    async with hub.hub():
        await hub.register("c1")

        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.calm()

        with pytest.raises(NotFound):
            await hub.cluster("c1")
        assert set((await _rights(hub)).values()) == {None}
        assert await hub.there(NAMESPACES, "", "c1") is not None


async def test_a_cluster_that_others_hold_keeps_their_finalizer(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1", metadata={"finalizers": ["example.com/hold"]})

        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.calm()

        cluster = await hub.cluster("c1")
        assert cluster["metadata"]["finalizers"] == ["example.com/hold"]
        assert set((await _rights(hub)).values()) == {None}


async def test_another_start_writes_nothing(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")
    before = hub.store.revision

    async with hub.hub():
        assert hub.store.revision == before


async def test_a_denied_cluster_loses_its_rights_whatever_its_status_reports(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")
    # The hub does not look while an agent writes that it was never accepted.
    await hub.report("c1", "False", ACCEPTED)
    await hub.change("c1", hubAcceptsClient=False)

    async with hub.hub():
        rights = await _rights(hub)

    assert rights["own"] is None
    assert [rule["verbs"] for rule in (rights["role"] or {})["rules"]] == [["get", "list", "watch"]]
