"""Admission of clusters and bindings: times of taints, the default set, addresses, agents."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from api.cluster.hub import NOW, Hub, cluster, of_kind, taint
from sully.api.cluster.addresses import is_https
from sully.api.cluster.taints.history import TAINT_HISTORY, read_history
from sully.server.requests import User

Obj = dict[str, Any]

LATER = "2030-01-01T12:01:00Z"
LONG_AGO = "2021-07-06T15:00:00+08:00"
SAME_MOMENT = "2030-01-01T13:00:00+01:00"
MUTATORS = (
    'admission webhook "managedclustermutators.admission.cluster.open-cluster-management.io" denied'
    " the request: "
)
VALIDATORS = MUTATORS.replace("mutators", "validators")


@dataclass(frozen=True)
class Case:
    """One change of the taints a minute after the cluster was made."""

    before: tuple[Obj, ...]
    after: tuple[Obj, ...]
    times: tuple[str, ...] = ()  # that are stored in the end
    warnings: tuple[str, ...] = ()
    refused: str = ""  # keys


def _stays(sent: str, index: int = 0) -> str:
    return f"spec.taints[{index}].timeAdded: {sent} is not used: the stored {NOW} stays"


CASES = {
    "time left out": Case((taint(),), (taint(),), (NOW,)),
    "time repeated": Case((taint(),), (taint(timeAdded=NOW),), (NOW,)),
    "time repeated in another zone": Case((taint(),), (taint(timeAdded=SAME_MOMENT),), (NOW,)),
    "time changed": Case(
        (taint(),), (taint(timeAdded=LONG_AGO),), (NOW,), warnings=(_stays(LONG_AGO),)
    ),
    "null": Case((taint(),), (taint(timeAdded=None),), (NOW,)),
    "another value": Case((taint(value="a"),), (taint(value="b"),), (LATER,)),
    "another effect": Case((taint(),), (taint(effect="NoSelectIfNew"),), (LATER,)),
    "a new one with a time": Case(
        (),
        (taint(timeAdded=LONG_AGO),),
        (LATER,),
        warnings=(
            f"spec.taints[0].timeAdded: {LONG_AGO} is not used: the time of this write counts",
        ),
    ),
    "one more": Case((taint("a"),), (taint("b"), taint("a")), (LATER, NOW)),
    "one less": Case((taint("a"), taint("b")), (taint("b"),), (NOW,)),
    "one key in two effects": Case(
        (taint(), taint(effect="NoSelectIfNew")),
        (taint(effect="NoSelectIfNew"), taint()),
        (NOW, NOW),
    ),
    "none": Case((taint(),), (), ()),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_server_keeps_the_time(case: Case) -> None:
    hub = Hub()
    await hub.create(cluster("c1", *case.before))
    hub.clock.advance(60)

    got = await hub.patch(cluster(), {"spec": {"taints": list(case.after)}})

    assert got.code == 200
    assert tuple(one["timeAdded"] for one in got.obj["spec"]["taints"]) == case.times
    assert got.warnings == case.warnings


REFERENCE = {
    "time left out": Case((taint(),), (taint(),), refused="k"),
    "time repeated": Case((taint(),), (taint(timeAdded=NOW),), (NOW,)),
    "time repeated in another zone": Case((taint(),), (taint(timeAdded=SAME_MOMENT),), (NOW,)),
    "time changed": Case((taint(),), (taint(timeAdded=LONG_AGO),), refused="k"),
    "another value": Case((taint(value="a"),), (taint(value="b"),), (LATER,)),
    "another value and the old time": Case(
        (taint(value="a"),), (taint(value="b", timeAdded=NOW),), refused="k"
    ),
    "another effect": Case((taint(),), (taint(effect="NoSelectIfNew"),), (LATER,)),
    "a new one": Case((), (taint(),), (LATER,)),
    "a new one with a time": Case((), (taint(timeAdded=LONG_AGO),), refused="k"),
    "only the changed one": Case(
        (taint("a"), taint("b")),
        (taint("a", timeAdded=NOW), taint("b", "NoSelectIfNew")),
        (NOW, LATER),
    ),
    "one less": Case((taint("a"), taint("b")), (taint("b", timeAdded=NOW),), (NOW,)),
    "two at fault": Case((taint("a"), taint("b")), (taint("a"), taint("b")), refused="a,b"),
    "one key in two effects never again": Case(
        (taint(), taint(effect="NoSelectIfNew")),
        (taint(timeAdded=NOW), taint(effect="NoSelectIfNew", timeAdded=NOW)),
        refused="k",
    ),
}


@pytest.mark.parametrize("case", REFERENCE.values(), ids=REFERENCE.keys())
async def test_kubernetes_wants_the_time_repeated(case: Case) -> None:
    hub = Hub(strict=True)
    await hub.create(cluster("c1", *case.before))
    hub.clock.advance(60)

    got = await hub.patch(cluster(), {"spec": {"taints": list(case.after)}})

    if case.refused:
        want = f'{MUTATORS}It is not allowed to set TimeAdded of Taint "{case.refused}".'
        assert (got.code, got.message) == (400, want)
    else:
        assert tuple(one["timeAdded"] for one in got.obj["spec"]["taints"]) == case.times


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
async def test_creation_stamps_whatever_was_sent(strict: bool) -> None:
    got = await Hub(strict=strict).create(cluster("c1", taint("a", timeAdded=LONG_AGO), taint("b")))

    assert [one["timeAdded"] for one in got.obj["spec"]["taints"]] == [NOW, NOW]
    assert bool(got.warnings) is not strict


async def test_applying_again_changes_nothing() -> None:
    hub = Hub()
    body = cluster("c1", taint(timeAdded=LONG_AGO), taint("b"))
    first = await hub.apply(body, "me")
    hub.clock.advance(60)

    again = await hub.apply(body, "me")

    assert again.obj["metadata"]["resourceVersion"] == first.obj["metadata"]["resourceVersion"]
    assert again.warnings == (_stays(LONG_AGO),)


SET = "cluster.open-cluster-management.io/clusterset"
SETS: dict[str, tuple[Obj, str]] = {
    "none": ({}, "default"),
    "empty": ({SET: ""}, "default"),
    "its own": ({SET: "east"}, "east"),
}


@pytest.mark.parametrize(("labels", "want"), SETS.values(), ids=SETS.keys())
async def test_every_cluster_is_in_a_set(labels: Obj, want: str) -> None:
    hub = Hub()
    body = cluster()
    body["metadata"]["labels"] = labels
    made = await hub.create(body)
    moved = await hub.patch(cluster(), {"metadata": {"labels": {SET: None}}})

    assert made.obj["metadata"]["labels"][SET] == want
    assert moved.obj["metadata"]["labels"][SET] == "default"


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
async def test_every_cluster_states_whether_it_is_accepted(strict: bool) -> None:
    """OCM's webhook writes a cluster as its types do, and those know no absence."""
    hub = Hub(strict=strict)
    bare = of_kind("ManagedCluster", "v1")
    applied = await hub.apply(cluster("c2"), "me")
    again = await hub.apply(cluster("c2"), "me")

    assert (await hub.create(bare)).obj["spec"] == {
        "hubAcceptsClient": False,
        "leaseDurationSeconds": 60,
    }
    assert (await hub.patch(bare, {"spec": None})).obj["spec"]["hubAcceptsClient"] is False
    assert (await hub.patch(bare, {"spec": {"hubAcceptsClient": True}})).obj["spec"][
        "hubAcceptsClient"
    ]
    assert again.obj["metadata"] == applied.obj["metadata"]


ADDRESSES: dict[str, tuple[str, str, str]] = {
    "https": ("c1", "https://c1:6443", ""),
    "http": ("c1", "http://c1", 'url "http://c1" is invalid in client configs'),
    "none": ("c1", "", 'url "" is invalid in client configs'),
    "broken": ("c1", "https://[", 'url "https://[" is invalid in client configs'),
    "a name that no namespace can have": (
        "a.b",
        "https://c1",
        "metadata.name format is not correct: must not contain dots",
    ),
}
# What Go parses, and what it does not.
SECURE = (
    "HTTPS://c1",
    "https://",
    "https:c1",
    "https:/c1",
    "https://c1:",
    "https://c1:70000",
    "https://user:pass%20word@c1:6443/a%20b c?%zz#x",
    "https://[::1]:6443",
    "https://[fe80::1%25en0]",
    "https://é.example",
    "https://%C3%A9.example",
)
INSECURE = (
    "c1:6443",
    " https://c1",
    "https//c1",
    "https://c1\n",
    "ht\ntps://c1",
    "https://c 1",
    "https://c1:port",
    "https://[::1]:6443x",
    "https://[::1",
    "https://::1]",
    "https://%41",
    "https://c1%",
    "https://c1/%zz",
    "https://c1/#%zz",
    "https://us er@c1",
    "https://a{b}",
)


@pytest.mark.parametrize("url", [*SECURE, *INSECURE])
def test_urls(url: str) -> None:
    assert is_https(url) is (url in SECURE)


@pytest.mark.parametrize(("name", "url", "want"), ADDRESSES.values(), ids=ADDRESSES.keys())
async def test_addresses(name: str, url: str, want: str) -> None:
    got = await Hub().create(cluster(name, managedClusterClientConfigs=[{"url": url}]))

    assert (got.code, got.message) == ((400, VALIDATORS + want) if want else (201, ""))


async def test_all_that_is_wrong_is_refused_together() -> None:
    configs: list[Obj] = [{"url": "a"}, {"url": "https://b"}, {}]

    got = await Hub().create(cluster("a.b", managedClusterClientConfigs=configs))

    problems = (
        "metadata.name format is not correct: must not contain dots",
        'url "a" is invalid in client configs',
        'url "" is invalid in client configs',
    )
    assert (got.code, got.message) == (400, VALIDATORS + "\n".join(problems))


async def test_schemas_speak_first() -> None:
    """OCM's webhooks see only what its API server finds valid."""
    plain = [{"url": "http://c1"}]
    bad = await Hub().create(cluster("c1", taint(effect="No"), managedClusterClientConfigs=plain))
    named = await Hub().create(cluster("C1", managedClusterClientConfigs=plain))
    empty = await Hub().create(_binding("east", ""))

    assert bad.problems.startswith('spec.taints[0].effect: Unsupported value: "No"')
    assert named.problems.startswith('metadata.name: Invalid value: "C1"')
    assert empty.problems == (
        'spec.clusterSet: Invalid value: "": spec.clusterSet in body should be at least 1 chars'
        " long"
    )


async def test_a_name_is_not_looked_at_without_addresses() -> None:
    assert (await Hub().create(cluster("a.b"))).code == 201


UNREACHABLE = taint("cluster.open-cluster-management.io/unreachable")
UNAVAILABLE = taint("cluster.open-cluster-management.io/unavailable")


def _agent(name: str, *groups: str) -> User:
    # In the masters' group as well, since this is not about roles.
    return User(name, ("system:masters", *groups))


BY_NAME = _agent("system:open-cluster-management:c1:agent")
BY_GROUP = _agent("agent", "system:open-cluster-management:c1")


@dataclass(frozen=True)
class Health:
    """A change of taints by a user."""

    before: tuple[Obj, ...] = ()
    after: tuple[Obj, ...] = ()
    user: User = field(default=BY_NAME)
    refused: bool = False


HEALTH = {
    "agent clears": Health((UNREACHABLE,), (), refused=True),
    "agent clears, known by its group": Health((UNREACHABLE,), (), BY_GROUP, refused=True),
    "agent sets": Health((), (UNAVAILABLE,), refused=True),
    "agent softens": Health(
        (UNREACHABLE,), (UNREACHABLE | {"effect": "PreferNoSelect"},), refused=True
    ),
    "agent swaps": Health((UNREACHABLE,), (UNAVAILABLE,), refused=True),
    "agent changes another": Health((UNREACHABLE,), (taint("mine"), UNREACHABLE)),
    "administrator clears": Health((UNREACHABLE,), (), _agent("admin")),
}


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
@pytest.mark.parametrize("case", HEALTH.values(), ids=HEALTH.keys())
async def test_health_taints_are_the_hubs(case: Health, strict: bool) -> None:
    hub = Hub(strict=strict)
    await hub.create(cluster("c1", *case.before))
    same = [
        one | {"timeAdded": NOW} if strict and one in case.before else one for one in case.after
    ]

    got = await hub.patch(cluster(), {"spec": {"taints": same}}, case.user)

    if case.refused and not strict:
        assert got.code == 403
        assert got.message.startswith(
            f'{VALIDATORS}managedclusters.cluster.open-cluster-management.io "c1" is forbidden:'
            f' user "{case.user.name}" cannot change the taints'
        )
    else:
        assert got.code == 200


THEIRS = taint("quarantine")
REMOVES: dict[str, tuple[User, Obj, str]] = {
    "a taint of an administrator": (
        BY_NAME,
        {"spec": {"taints": []}},
        "cannot remove the taint quarantine, an administrator of the hub can",
    ),
    "a taint, by softening it": (
        BY_GROUP,
        {"spec": {"taints": [THEIRS | {"effect": "PreferNoSelect"}]}},
        "cannot remove the taint quarantine, an administrator of the hub can",
    ),
    "a finalizer": (
        BY_NAME,
        {"metadata": {"finalizers": []}},
        "cannot remove the finalizer example.com/held, the hub sets it",
    ),
    "nothing, but adds a finalizer": (
        BY_NAME,
        {"metadata": {"finalizers": ["example.com/held", "example.com/mine"]}},
        "cannot add the finalizer example.com/mine, the hub sets it",
    ),
    "nothing, but adds an owner": (
        BY_NAME,
        {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "u-1"}
                ]
            }
        },
        "cannot change metadata.ownerReferences, an administrator of the hub can",
    ),
    "a label": (
        BY_NAME,
        {"metadata": {"labels": {"env": None}}},
        "cannot change the label env, an administrator of the hub can",
    ),
    "nothing, but adds a label": (
        BY_NAME,
        {"metadata": {"labels": {"gpus": "many"}}},
        "cannot change the label gpus, an administrator of the hub can",
    ),
    "a label, as an administrator": (
        _agent("admin"),
        {"metadata": {"labels": {"env": None}}},
        "",
    ),
    "nothing, but adds a taint": (BY_NAME, {"spec": {"taints": [THEIRS, taint("mine")]}}, ""),
    "a taint, as an administrator": (_agent("admin"), {"spec": {"taints": []}}, ""),
}


@pytest.mark.parametrize(("user", "change", "want"), REMOVES.values(), ids=REMOVES.keys())
async def test_what_an_agent_removes(user: User, change: Obj, want: str) -> None:
    hub = Hub()
    held = cluster("c1", THEIRS)
    held["metadata"] |= {"finalizers": ["example.com/held"], "labels": {"env": "prod"}}
    await hub.create(held)

    got = await hub.patch(cluster(), change, user)

    assert (got.code, got.message.endswith(want)) == (403 if want else 200, True)


OWNED = "sully.dev/policy-taints"


@pytest.mark.parametrize("sent", [None, "", "quarantine:NoSelect"])
async def test_an_agent_does_not_state_whose_a_taint_is(sent: str | None) -> None:
    hub = Hub()
    marked = cluster("c1", taint("hot"), THEIRS)
    marked["metadata"]["annotations"] = {OWNED: "hot:NoSelect"}
    await hub.create(marked)
    change: Obj = {"metadata": {"annotations": {OWNED: sent}}}

    agent = await hub.patch(cluster(), change, BY_NAME)
    without = await hub.patch(cluster(), change | {"spec": {"taints": [THEIRS]}}, BY_NAME)
    admin = await hub.patch(cluster(), change, _agent("admin"))

    assert agent.obj["metadata"]["annotations"][OWNED] == "hot:NoSelect"
    assert without.code == 403
    assert (admin.obj["metadata"].get("annotations") or {}).get(OWNED) == sent


@pytest.mark.parametrize("name", ["sully.dev/policy-states", "sully.dev/cleared-at"])
@pytest.mark.parametrize("stored", [{}, {"sully.dev/policy-states": "[]"}])
async def test_an_agent_does_not_declare_its_cluster_healthy(name: str, stored: Obj) -> None:
    hub = Hub()
    marked = cluster("c1")
    marked["metadata"]["annotations"] = stored
    await hub.create(marked)
    change: Obj = {"metadata": {"annotations": {name: "2030-01-01T00:00:00Z", "mine": "x"}}}

    agent = await hub.patch(cluster(), change, BY_NAME)
    admin = await hub.patch(cluster(), change, _agent("admin"))

    assert agent.obj["metadata"]["annotations"] == {**stored, "mine": "x"}
    assert admin.obj["metadata"]["annotations"][name] == "2030-01-01T00:00:00Z"


@pytest.mark.parametrize(("user", "ends"), [(BY_NAME, ""), (_agent("admin"), "2026-01-01")])
async def test_an_agent_does_not_state_when_a_taint_ends(user: User, ends: str) -> None:
    hub = Hub()
    await hub.create(cluster("c1", taint("hot")))
    entry = {"time": "2026-01-01T00:00:00Z", "event": "tainted", "key": "hot", "effect": "NoSelect"}
    sent = json.dumps([entry | {"expiresAt": "2026-01-01"}])

    got = await hub.patch(cluster(), {"metadata": {"annotations": {TAINT_HISTORY: sent}}}, user)

    *_, last = read_history(got.obj["metadata"]["annotations"])
    assert last.expires_at == ends
    assert (last.by == user.name) is bool(ends)


def _binding(name: str, of: str) -> Obj:
    return of_kind("ManagedClusterSetBinding", "v1beta2", name, spec={"clusterSet": of})


NAME_RULE = (
    'admission webhook "managedclustersetbindingvalidators.admission'
    '.cluster.open-cluster-management.io" denied the request: The ManagedClusterSetBinding must'
    " have the same name as the target ManagedClusterSet"
)


async def test_a_binding_has_the_name_of_its_set() -> None:
    hub = Hub()
    right = await hub.create(_binding("east", "east"))
    wrong = await hub.create(_binding("west", "east"))
    changed = await hub.patch(_binding("east", ""), {"spec": {"clusterSet": "west"}})

    assert right.code == 201
    assert (wrong.code, wrong.message) == (400, NAME_RULE)
    assert (changed.code, changed.message) == (400, NAME_RULE)


MINE = taint("mine")
UNWELL: dict[str, tuple[str, Obj, bool]] = {
    "unreachable": ("Unknown", UNREACHABLE, True),
    "never heard of": ("missing", UNREACHABLE, True),
    "never heard of, and not what that means": ("missing", UNAVAILABLE, False),
    "not well": ("False", UNAVAILABLE, True),
    "no longer unreachable": ("False", UNREACHABLE, False),
    "well again": ("True", UNREACHABLE, False),
    "another user's": ("Unknown", UNREACHABLE | {"effect": "NoSelectIfNew"}, False),
}


def _available(status: str) -> Obj:
    reported = {"status": status, "reason": "Test", "message": "", "lastTransitionTime": NOW}
    return {"status": {"conditions": [reported | {"type": "ManagedClusterConditionAvailable"}]}}


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
@pytest.mark.parametrize(("status", "lost", "stays"), UNWELL.values(), ids=UNWELL.keys())
async def test_a_manifest_does_not_take_away_what_health_states(
    status: str, lost: Obj, stays: bool, strict: bool
) -> None:
    """Else whoever applies it every minute would let tolerated seconds restart every minute."""
    hub = Hub(strict=strict)
    await hub.create(cluster("c1", lost))
    if status != "missing":
        await hub.patch(cluster(), _available(status), subresource="status")
    hub.clock.advance(60)

    got = await hub.patch(cluster(), {"spec": {"taints": [MINE]}})

    retained = [lost | {"timeAdded": NOW}] if stays and not strict else []
    assert got.code == 200
    assert got.obj["spec"]["taints"] == [MINE | {"timeAdded": LATER}, *retained]
    assert got.warnings == tuple(
        f"spec.taints: {item['key']} stays while ManagedClusterConditionAvailable is {status}"
        for item in retained
    )


POLICY = "sully.dev/policy-taints"


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
async def test_a_manifest_does_not_take_away_what_a_policy_set(strict: bool) -> None:
    hub = Hub(strict=strict)
    made = cluster("c1", taint("slow", value="v"), MINE)
    made["metadata"]["annotations"] = {POLICY: "slow=v:NoSelect,other:NoSelect"}
    await hub.create(made)
    hub.clock.advance(60)

    got = await hub.patch(cluster(), {"spec": {"taints": [taint("new")]}})
    freed = {"metadata": {"annotations": {POLICY: None}}, "spec": {"taints": []}}
    gone = await hub.patch(cluster(), freed)

    retained = [] if strict else [taint("slow", value="v") | {"timeAdded": NOW}]
    assert got.obj["spec"]["taints"] == [taint("new") | {"timeAdded": LATER}, *retained]
    assert got.warnings == (
        () if strict else (f"spec.taints: slow stays while the annotation {POLICY} names it",)
    )
    assert gone.obj["spec"]["taints"] == []


BAD: Obj = {"matchExpressions": [{"key": "x", "operator": "Near"}]}


@pytest.mark.parametrize("strict", [False, True], ids=["default", "reference"])
async def test_a_set_that_cannot_select_is_accepted_with_a_warning(strict: bool) -> None:
    selector = {"selectorType": "LabelSelector", "labelSelector": BAD}
    reported = await Hub(strict=strict).create(
        of_kind("ManagedClusterSet", "v1beta2", spec={"clusterSelector": selector})
    )

    assert reported.code == 201
    assert len(reported.warnings) == (0 if strict else 1)
    for text in reported.warnings:
        assert text.startswith("spec.clusterSelector.labelSelector: ")
        assert text.endswith(": placements that use this set are not scheduled")
