"""The roles of `sully install` against what controllers read, and what they may on our server.

That what is granted is also used, a whole run shows (tests/e2e/rights.py).
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from e2e.rights import Right, follows, granted, unused
from e2e.trail import Use
from e2e.unused import UNUSED
from install.identities import IDENTITIES
from sully.controller_context import MANAGER
from sully.controller_setup import CONTROLLERS
from sully.domain.capabilities.offers import OURS, PATCHES
from sully.install.rbac import GATED, RIGHTS, rules_of
from sully.machinery.gates import Gates
from sully.server.authorization.policy.components import GATED as GATED_THERE
from sully.server.authorization.policy.components import ROLES

Obj = dict[str, Any]
THERE = {
    item["metadata"]["name"].removeprefix("system:").removeprefix("controller:"): item["rules"]
    for item in (*ROLES, *(role for role, _ in GATED_THERE.values()))
}
# Both roles are bound to the scheduler's user, as in Kubernetes.
THERE["kube-scheduler"] = [*THERE["kube-scheduler"], *THERE["volume-scheduler"]]


def allowed(rules: list[Obj], group: str, resource: str, verb: str) -> bool:
    return any(
        {group, "*"} & set(rule["apiGroups"])
        and {resource, "*"} & set(rule["resources"])
        and verb in rule["verbs"]
        for rule in rules
        if "resourceNames" not in rule and "apiGroups" in rule
    )


@pytest.mark.parametrize("name", CONTROLLERS)
def test_what_caches_read_is_granted(name: str) -> None:
    refused = {
        (verb, *which)
        for which in follows(name)
        for verb in ("list", "watch")
        if not allowed(rules_of(name), *which, verb)
    }

    assert not refused


@pytest.mark.parametrize("name", CONTROLLERS)
def test_nothing_is_granted_that_its_identities_do_not_have(name: str) -> None:
    theirs = [rule for agent in IDENTITIES[name] for rule in THERE[agent]]
    more = {
        (group, resource, verb)
        for rule in RIGHTS[name]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        # There patches are in one group only.
        if not allowed(theirs, group, resource, verb)
        and not (group == OURS and resource.partition("/")[0] == PATCHES)
    }

    assert not more


def test_features_need_the_same_as_on_our_server() -> None:
    there = {gate: role["rules"] for gate, (role, _) in GATED_THERE.items()}
    assert {gate: [*chain(*more.values())] for gate, more in GATED.items()} == there
    for gate, more in GATED.items():
        for name, rules in more.items():
            assert rules_of(name, Gates({gate: True})) == [*rules_of(name), *rules]


def test_only_what_is_granted_is_named_as_not_used() -> None:
    assert not UNUSED.keys() - set(map(str, granted()))
    assert all(UNUSED.values())


# who, and what → the right that counts as used, as it is printed; nothing: none does
USES = {
    "a controller's own": (
        Use("resource-claim-controller", "create", "resource.k8s.io", "resourceclaims"),
        "sully:claims: create resourceclaims.resource.k8s.io",
        True,
    ),
    "another's": (
        Use("resource-claim-controller", "create", "resource.k8s.io", "resourceclaims"),
        "sully:scheduling: create resourceclaims.resource.k8s.io",
        False,
    ),
    "of a cache that it has": (
        Use(MANAGER, "watch", "policy", "poddisruptionbudgets"),
        "sully:disruption: watch poddisruptionbudgets.policy",
        True,
    ),
    "of a cache that it has not": (
        Use(MANAGER, "watch", "", "namespaces"),
        "sully:disruption: watch pods",
        False,
    ),
    "of everything": (
        Use("namespace-controller", "deletecollection", "apps", "deployments"),
        "sully:namespaces: deletecollection *.*",
        True,
    ),
}


@pytest.mark.parametrize(("use", "right", "counts"), USES.values(), ids=USES.keys())
def test_what_counts_as_used(use: Use, right: str, counts: bool) -> None:
    before, after = (set(map(str, unused(used))) for used in ((), (use,)))

    assert right in before
    assert (right not in after) == counts


def test_a_right_that_nothing_used_is_found() -> None:
    everything = {
        Use(agent, item.verb, item.group, item.resource)
        for item in granted()
        for agent in (*IDENTITIES.get(item.role.removeprefix("sully:"), ()), MANAGER)
    }
    new = Right("sully:expiry", "delete", "resource.k8s.io", "devicetaintrules")
    others = {
        Right(f"sully:{role}", "delete", "resource.k8s.io", "devicetaintrules")
        for role in ("devicetaintpolicies", "devicemaintenances")
    }
    reduced = {
        use for use in everything if not (use.verb == "delete" and use.resource == new.resource)
    }

    assert unused(everything) == set()
    assert unused(reduced) == {new, *others}
