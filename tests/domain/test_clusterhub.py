"""What a hub reports about sets and acceptance, and what it grants to agents."""

import pytest

from sully.api.cluster.types import (
    LabelSelector,
    ManagedClusterSelector,
    ManagedClusterSet,
    ManagedClusterSetSpec,
)
from sully.domain.clusters.hub import AUTO_UPDATE, acceptance_error, is_modified, set_finding
from sully.domain.clusters.rights import agent_user, cluster_role, common_role
from sully.machinery.meta import ObjectMeta

EXCLUSIVE = ManagedClusterSelector()
EVERYTHING = ManagedClusterSelector(selector_type="LabelSelector", label_selector=LabelSelector())
NOTHING = ManagedClusterSelector(selector_type="LabelSelector")
SOME = ManagedClusterSelector(
    selector_type="LabelSelector", label_selector=LabelSelector(match_labels={"a": "b"})
)
SETS = {
    "default as it is meant": ("default", EXCLUSIVE, {}, False),
    "global as it is meant": ("global", EVERYTHING, {}, False),
    "default for all": ("default", EVERYTHING, {}, True),
    "global for some": ("global", SOME, {}, True),
    "global without selector": ("global", NOTHING, {}, True),
    "left alone": ("global", SOME, {AUTO_UPDATE: "false"}, False),
    "not left alone": ("global", SOME, {AUTO_UPDATE: "true"}, True),
}


@pytest.mark.parametrize(("name", "selector", "annotations", "want"), SETS.values(), ids=SETS)
def test_astray(
    name: str, selector: ManagedClusterSelector, annotations: dict[str, str], *, want: bool
) -> None:
    set_ = ManagedClusterSet(
        metadata=ObjectMeta(name=name, annotations=annotations),
        spec=ManagedClusterSetSpec(cluster_selector=selector),
    )

    assert is_modified(set_) is want


def test_counts() -> None:
    assert (set_finding(0).status, set_finding(0).reason) == ("True", "NoClusterMatched")
    assert set_finding(1).message == "1 ManagedClusters selected"


def test_what_is_in_the_way_is_reported_line_by_line() -> None:
    assert acceptance_error(["a", "b"]).message == "a\nb"


def test_a_role_is_for_one_cluster() -> None:
    for accepted in (True, False):
        rules = cluster_role("c1", accepted=accepted)["rules"]
        assert [rule["resourceNames"] for rule in rules] == [["c1"]] * len(rules)


def test_agents_may_not_write_their_cluster_when_denied() -> None:
    verbs = {verb for rule in cluster_role("c1", accepted=False)["rules"] for verb in rule["verbs"]}

    assert verbs == {"get", "list", "watch"}


def test_no_agent_may_create_leases() -> None:
    leases = [rule for rule in common_role()["rules"] if rule["resources"] == ["leases"]]

    assert [rule["verbs"] for rule in leases] == [["get", "list", "watch", "update"]]


def test_an_agent_is_in_the_group_of_its_cluster() -> None:
    name, groups = agent_user("c1", "x")

    assert name == "system:open-cluster-management:c1:x"
    assert "system:open-cluster-management:c1" in groups
