"""Who may do what by default: identities × verbs × kinds, as one table."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from server.authorization.world import World, account, ask, node, person, user
from sully.server.requests import User

IDENTITIES: dict[str, User] = {
    "master": User("root", ("system:masters",)),
    "admin": person("adam"),
    "edit": person("edith"),
    "view": person("violet"),
    "reader": person("rita"),  # view, in all namespaces
    "nobody": person("nora"),
    "anon": User("system:anonymous", ("system:unauthenticated",)),
    "sched": User("system:kube-scheduler", ("system:authenticated",)),
    "taints": account("device-taint-eviction-controller"),
    "claims": account("resource-claim-controller"),
    "node": node("n1"),
}

# Namespace `team` is where admin, edit and view have their roles; `-` is the cluster.
TABLE = """
verb        what                                       where  master admin edit view reader nobody anon sched taints claims node
get         pods                                       team   +      +     +    +    +      .      .    +     +      +      .
list        pods                                       team   +      +     +    +    +      .      .    +     +      +      .
list        pods                                       other  +      .     .    .    +      .      .    +     +      +      .
list        pods                                       -      +      .     .    .    +      .      .    +     +      +      .
create      pods                                       team   +      +     +    .    .      .      .    .     .      .      +
delete      pods                                       team   +      +     +    .    .      .      .    +     +      .      +
delete      pods                                       other  +      .     .    .    .      .      .    +     +      .      +
update      pods/status                                team   +      .     .    .    .      .      .    +     +      +      +
get         pods/log                                   team   +      +     +    +    +      .      .    .     .      .      .
create      pods/exec                                  team   +      +     +    .    .      .      .    .     .      .      .
create      pods/eviction                              team   +      +     +    .    .      .      .    .     .      .      +
create      pods/binding                               team   +      .     .    .    .      .      .    +     .      .      .
update      pods/finalizers                            team   +      .     .    .    .      .      .    .     .      +      .
get         secrets                                    team   +      +     +    .    .      .      .    .     .      .      .
create      secrets                                    team   +      +     +    .    .      .      .    .     .      .      .
get         configmaps                                 team   +      +     +    +    +      .      .    .     .      .      .
patch       configmaps                                 team   +      +     +    .    .      .      .    .     .      .      .
create      serviceaccounts/token                      team   +      +     +    .    .      .      .    .     .      .      .
impersonate serviceaccounts                            team   +      +     +    .    .      .      .    .     .      .      .
impersonate users                                      -      +      .     .    .    .      .      .    .     .      .      .
create      events                                     team   +      +     +    .    .      .      .    +     +      +      +
list        events                                     team   +      +     +    +    +      .      .    .     .      .      .
get         namespaces                                 team   +      +     +    +    +      .      .    +     .      .      .
delete      namespaces                                 team   +      .     .    .    .      .      .    .     .      .      .
create      namespaces                                 -      +      .     .    .    .      .      .    .     .      .      .
list        nodes                                      -      +      .     .    .    .      .      .    +     .      .      .
update      nodes                                      -      +      .     .    .    .      .      .    .     .      .      +
update      nodes/status                               -      +      .     .    .    .      .      .    .     .      .      +
delete      nodes                                      -      +      .     .    .    .      .      .    .     .      .      .
list        apps/deployments                           team   +      +     +    +    +      .      .    .     .      .      .
update      apps/deployments/scale                     team   +      +     +    .    .      .      .    .     .      .      .
list        apps/replicasets                           team   +      +     +    +    +      .      .    +     .      .      .
create      policy/poddisruptionbudgets                team   +      +     +    .    .      .      .    .     .      .      .
get         resource.k8s.io/resourceclaims             team   +      +     +    +    +      .      .    +     +      +      .
create      resource.k8s.io/resourceclaims             team   +      +     +    .    .      .      .    +     .      +      .
patch       resource.k8s.io/resourceclaims             team   +      +     +    .    .      .      .    +     .      +      .
update      resource.k8s.io/resourceclaims/status      team   +      .     .    .    .      .      .    +     .      +      .
update      resource.k8s.io/resourceclaims/binding     team   +      .     .    .    .      .      .    +     .      +      .
get         resource.k8s.io/resourceclaimtemplates     team   +      +     +    +    +      .      .    .     .      +      .
create      resource.k8s.io/resourceclaimtemplates     team   +      +     +    .    .      .      .    .     .      .      .
list        resource.k8s.io/deviceclasses              -      +      .     .    .    .      .      .    +     +      .      .
create      resource.k8s.io/deviceclasses              -      +      .     .    .    .      .      .    .     .      .      .
list        resource.k8s.io/devicetaintrules           -      +      .     .    .    .      .      .    +     +      .      .
create      resource.k8s.io/devicetaintrules           -      +      .     .    .    .      .      .    .     .      .      .
update      resource.k8s.io/devicetaintrules           -      +      .     .    .    .      .      .    .     .      .      .
delete      resource.k8s.io/devicetaintrules           -      +      .     .    .    .      .      .    .     .      .      .
patch       resource.k8s.io/devicetaintrules/status    -      +      .     .    .    .      .      .    .     +      .      .
list        resource.k8s.io/resourceslices             -      +      .     .    .    .      .      .    +     +      .      .
create      resource.k8s.io/resourceslices             -      +      .     .    .    .      .      .    .     .      .      +
delete      resource.k8s.io/resourceslices             -      +      .     .    .    .      .      .    .     .      .      .
update      coordination.k8s.io/leases                 team   +      +     +    .    .      .      .    +     .      .      .
list        rbac.authorization.k8s.io/roles            team   +      +     .    .    .      .      .    .     .      .      .
create      rbac.authorization.k8s.io/rolebindings     team   +      +     .    .    .      .      .    .     .      .      .
create      rbac.authorization.k8s.io/rolebindings     other  +      .     .    .    .      .      .    .     .      .      .
list        rbac.authorization.k8s.io/clusterroles     -      +      .     .    .    .      .      .    .     .      .      .
escalate    rbac.authorization.k8s.io/clusterroles     -      +      .     .    .    .      .      .    .     .      .      .
bind        rbac.authorization.k8s.io/roles            team   +      .     .    .    .      .      .    .     .      .      .
create      authorization.k8s.io/selfsubjectaccessreviews   -    + + + + + + . + + + +
create      authorization.k8s.io/selfsubjectrulesreviews    -    + + + + + + . + + + +
create      authentication.k8s.io/selfsubjectreviews        -    + + + + + + . + + + +
create      authorization.k8s.io/subjectaccessreviews       -    + . . . . . . + . . +
create      authorization.k8s.io/localsubjectaccessreviews  team + + . . . . . . . . +
create      authentication.k8s.io/tokenreviews              -    + . . . . . . + . . +
get         /healthz                                   -      +      +     +    +    +      +      +    +     +      +      +
get         /version                                   -      +      +     +    +    +      +      +    +     +      +      +
get         /apis/apps                                 -      +      +     +    +    +      +      .    +     +      +      +
get         /openapi/v3                                -      +      +     +    +    +      +      .    +     +      +      +
get         /metrics                                   -      +      .     .    .    .      .      .    .     .      .      .
post        /version                                   -      +      .     .    .    .      .      .    .     .      .      .
"""  # noqa: E501 - a table is as wide as it is

HEAD, *ROWS = [line.split() for line in TABLE.strip().splitlines()]
NAMES = HEAD[3:]
CASES = [
    pytest.param(
        name,
        verb,
        what,
        "" if where == "-" else where,
        mark == "+",
        id=f"{name} {verb} {what} {where}",
    )
    for verb, what, where, *marks in ROWS
    for name, mark in zip(NAMES, marks, strict=True)
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(shared: World) -> AsyncIterator[World]:
    for namespace in ("team", "other"):
        body = {"metadata": {"name": namespace}}
        await shared.call(IDENTITIES["master"], "create", "namespaces", body)
    for role in ("admin", "edit", "view"):
        who = IDENTITIES[role].name
        await shared.bind(role, f"ClusterRole/{role}", [user(who)], namespace="team")
    await shared.bind("readers", "ClusterRole/view", [user("rita")])
    yield shared


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("name", "verb", "what", "where", "want"), CASES)
async def test_may(cluster: World, name: str, verb: str, what: str, where: str, want: bool) -> None:
    asked = ask(verb, what, where)

    assert cluster.authorize(IDENTITIES[name], asked).allowed is want


def test_the_table_has_every_identity() -> None:
    assert list(IDENTITIES) == NAMES
