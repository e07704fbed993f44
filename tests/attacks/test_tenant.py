"""A tenant: a user with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import manifests
from hostile.heavy import (
    CLUSTER,
    DEVICES,
    MOST_SELECTORS,
    RESOURCE,
    entangled,
    heavy,
    heavy_predicates,
    publish,
    run_claim,
    run_pod,
)
from hostile.target import Answer, Caller, Obj, Target, eventually, parse, receive
from sully.testing.cluster import process

pytestmark = pytest.mark.slow
REASON = "authorization.k8s.io/reason"


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403


def test_reads_without_a_trace(target: Target, namespace: str) -> None:
    """Look around where one may not, by every kind of read, and as another user."""
    mallory = target.tenant("snooping")
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    reads = (
        ("list", secrets),
        ("get", f"{secrets}/theirs"),
        ("watch", f"{secrets}?watch=true"),
        ("get", "/metrics"),
        ("get", "/debug/placements/other/one"),
    )
    for _, path in reads:
        assert mallory.get(path).code == 403, path

    for verb, path in reads:
        expected = ("admin-of-snooping", verb, path.partition("?")[0])
        (event,) = target.audited(partial(_is_request, expected))
        assert event["responseStatus"]["code"] == 403


def _is_request(expected: tuple[str, str, str], event: Obj) -> bool:
    return _asked(event) == expected


def _asked(event: dict[str, Any]) -> tuple[str, str, str]:
    return event["user"].get("username", ""), event["verb"], event.get("requestURI", "")


def test_acts_as_another_user_without_a_trace(target: Target, namespace: str) -> None:
    groups = {"impersonate-group": "system:masters", "impersonate-extra-x": "y" * 4000}
    headers = {"impersonate-user": "somebody-else", **groups}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    assert target.admin.call("GET", path, headers=headers).code == 200

    (event,) = target.audited(
        lambda item: item.get("impersonatedUser", {}).get("username") == "somebody-else"
    )
    assert event["user"]["username"] == "attacks-admin"
    assert event["verb"] == "list"
    assert "system:masters" in event["impersonatedUser"]["groups"]


def test_tries_to_act_as_another_user_without_a_trace(target: Target, namespace: str) -> None:
    """Groups that decide are not hidden behind long names of others."""
    mallory = target.tenant(namespace)
    groups = {"impersonate-group": "system:masters", "impersonate-uid": "u" * 2000}
    headers = {"impersonate-user": "wanted-" + "x" * 2000, **groups}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    assert mallory.call("GET", path, headers=headers).code == 403

    (event,) = target.audited(
        lambda item: "wanted-" in (item.get("annotations") or {}).get(REASON, "")
    )
    assert event["user"]["username"] == f"admin-of-{namespace}"
    assert "impersonatedUser" not in event
    assert '"system:masters"' in event["annotations"][REASON]


def test_writes_long_entries_into_the_audit_log(target: Target, namespace: str) -> None:
    """Write as much as possible into every field, to push out what others did."""
    mallory = target.tenant("filling")
    name = "n" * 6000
    headers = {"user-agent": "\xff" * 6000}
    for path in (
        f"/api/v1/namespaces/{name}/configmaps/{name}",
        f"/{name}",
        f"/debug/placements/{name}/{name}",
    ):
        mallory.call("DELETE", path, headers=headers)
    mallory.call("POST", "/api/v1/namespaces/filling/configmaps", {"metadata": {"name": name}})
    target.audited(lambda item: item.get("objectRef", {}).get("name", "").startswith("nnn"))

    log = (target.up.data_dir / "audit.log").read_bytes()
    assert max(map(len, log.splitlines())) < 8 << 10


def test_asks_a_what_if_which_clusters_exist(target: Target) -> None:
    clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
    target.admin.post(clusters, {"metadata": {"name": "hidden"}, "spec": {}}).ok()
    mallory = target.tenant("guessing")
    assert mallory.get(f"{clusters}/hidden").code == 403

    responses = [
        mallory.post("/debug/placements/guessing/", {"changes": [{"delete": {"cluster": name}}]})
        for name in ("hidden", "no-such")
    ]

    assert [answer.code for answer in responses] == [403, 403]
    assert responses[0].body.replace(b"hidden", b"no-such") == responses[1].body


def test_disarms_a_rule_without_a_trace(target: Target) -> None:
    """Pause a rule, resume it and delete it before anybody looks, as one of many admins."""
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    spec = {"taint": {"key": "example.com/broken", "effect": "NoSchedule"}}
    target.admin.post(rules, {"metadata": {"name": "guarding"}, "spec": spec}).ok()
    record = target.eventually(lambda: _record(target, "guarding"))
    mallory = target.user("saboteur", "system:masters")

    for paused in ("true", None):
        annotations = {"sully.dev/paused": paused}
        mallory.merge(f"{rules}/guarding", {"metadata": {"annotations": annotations}}).ok()
    assert mallory.delete(f"{rules}/guarding").code == 200

    # Not eventually: it is written with the change itself.
    status = (_record(target, "guarding") or record)["status"]
    assert [(change["what"], change["by"]) for change in status["changes"]] == [
        ("paused", "saboteur"),
        ("resumed", "saboteur"),
    ]
    assert status["deletedBy"] == "saboteur"


def test_hides_the_fault_of_a_device(target: Target) -> None:
    """Suppress the taint of a driver, with a rule, the annotation of one, or a policy."""
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    policies = "/apis/sully.dev/v1alpha1/devicetaintpolicies"
    until = "2031-01-01T00:00:00Z"
    annotations = {
        "sully.dev/suppresses": '[{"key":"example.com/broken"}]',
        "sully.dev/expires-at": until,
    }
    spec = {"taint": {"key": "example.com/note", "effect": "None"}}
    target.admin.post(rules, {"metadata": {"name": "noted"}, "spec": spec}).ok()
    mallory = target.tenant("hiding")
    rule = {"metadata": {"name": "hide", "annotations": annotations}, "spec": spec}
    suppress = [{"key": "example.com/broken", "until": until}]
    hiding = {"mode": "Enforce", "selector": {"matchAll": True}, "suppress": suppress}

    assert mallory.post(rules, rule).code == 403
    assert mallory.merge(f"{rules}/noted", {"metadata": {"annotations": annotations}}).code == 403
    assert mallory.post(policies, {"metadata": {"name": "hide"}, "spec": hiding}).code == 403
    assert target.admin.delete(f"{rules}/noted").code == 200


def _record(target: Target, rule: str) -> dict[str, Any] | None:
    path = f"/apis/sully.dev/v1alpha1/taintrecords?labelSelector=sully.dev/rule={rule}"
    items = target.admin.get(path).ok()["items"]
    # Its status comes with a second write.
    return items[0] if items and items[0].get("status", {}).get("taint") else None


def test_forges_what_the_devices_of_a_claim_were(target: Target) -> None:
    """Rules are judged by this note when a driver has withdrawn a device."""
    mallory = target.tenant("forger")
    note = "sully.dev/allocated-attributes"
    claims = "/apis/resource.k8s.io/v1/namespaces/forger/resourceclaims"
    requests = [{"name": "r", "exactly": {"deviceClassName": "x"}}]
    body = {
        "metadata": {"name": "c", "annotations": {note: "forged", "mine": "kept"}},
        "spec": {"devices": {"requests": requests}},
    }

    made = mallory.post(claims, body).ok()["metadata"]["annotations"]
    changed = mallory.merge(f"{claims}/c", {"metadata": {"annotations": {note: "forged"}}})
    target.admin.merge(f"{claims}/c", {"metadata": {"annotations": {note: "true"}}}).ok()
    removed = mallory.merge(f"{claims}/c", {"metadata": {"annotations": {note: None}}})
    replaced = mallory.put(f"{claims}/c", body)

    assert (made, changed.ok()["metadata"]["annotations"]) == ({"mine": "kept"}, {"mine": "kept"})
    for answer in (removed, replaced):
        assert answer.ok()["metadata"]["annotations"][note] == "true"


# -- quotas ---------------------------------------------------------------------------------------

GPUS = "gpu.deviceclass.resource.k8s.io/devices"


def settled_tenant(target: Target, namespace: str) -> Caller:
    """Return the tenant of a new namespace that has all that each namespace gets."""
    mallory = target.tenant(namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
    eventually(lambda: target.admin.get(path).code == 200, path)
    return mallory


def bound(target: Target, namespace: str, hard: dict[str, int]) -> Caller:
    """Return the tenant of a new namespace with a quota that is in force."""
    mallory = settled_tenant(target, namespace)
    quota = manifests.body("ResourceQuota", "bound", {"hard": hard})
    target.admin.post(f"/api/v1/namespaces/{namespace}/resourcequotas", quota).ok()
    eventually(lambda: used(target, namespace).keys() == hard.keys(), "the quota is counted")
    return mallory


def used(target: Target, namespace: str) -> dict[str, str]:
    quota = target.admin.get(f"/api/v1/namespaces/{namespace}/resourcequotas/bound").ok()
    result: dict[str, str] = quota["status"].get("used", {})
    return result


def config_maps(target: Target, namespace: str) -> int:
    return len(target.admin.get(f"/api/v1/namespaces/{namespace}/configmaps").ok()["items"])


def together(calls: list[Callable[[], Answer]]) -> list[Answer]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [item.result() for item in [pool.submit(call) for call in calls]]


def test_fills_the_memory_beyond_its_quota(target: Target) -> None:
    mallory = bound(target, "hoarder", {"count/configmaps": 10})
    path, megabyte = "/api/v1/namespaces/hoarder/configmaps", {"data": {"a": "x" * 10**6}}

    responses = [mallory.post(path, {"metadata": {"name": f"c-{n}"}} | megabyte) for n in range(80)]

    assert [answer.code for answer in responses] == [201] * 9 + [403] * 71
    assert responses[-1].json["message"] == (
        'configmaps "c-79" is forbidden: exceeded quota: bound, requested: count/configmaps=1,'
        " used: count/configmaps=10, limited: count/configmaps=10"
    )
    assert config_maps(target, "hoarder") == 10


def test_stores_one_object_that_is_too_large(target: Target) -> None:
    mallory = target.tenant("giant")
    data = {"metadata": {"name": "c"}, "data": {"a": "x" * (1024 * 1024 + 1)}}
    # Two million characters, none of them in a field that has a limit of its own.
    labels = {f"label-{n:06}": "x" * 63 for n in range(28_000)}
    claim = {"metadata": {"name": "c", "labels": labels}, "spec": {}}

    by_kind = mallory.post("/api/v1/namespaces/giant/configmaps", data)
    by_store = mallory.post("/apis/resource.k8s.io/v1/namespaces/giant/resourceclaims", claim)

    assert (by_kind.code, by_store.code) == (422, 413)


def test_races_for_the_last_place(target: Target) -> None:
    mallory = bound(target, "racer", {"count/configmaps": 2, "secrets": 1})
    path = "/api/v1/namespaces/racer"

    def post(kind: str, number: int) -> Callable[[], Answer]:
        return lambda: mallory.post(f"{path}/{kind}", {"metadata": {"name": f"r-{number}"}})

    for kind in ("configmaps", "secrets"):
        codes = [answer.code for answer in together([post(kind, n) for n in range(50)])]
        assert sorted(codes) == [201] + [403] * 49
    assert config_maps(target, "racer") == 2
    assert used(target, "racer") == {"count/configmaps": "2", "secrets": "1"}


def test_creates_and_deletes_to_confuse_the_count(target: Target) -> None:
    mallory = bound(target, "churner", {"configmaps": 4})
    path = "/api/v1/namespaces/churner/configmaps"

    def churn(worker: int) -> int:
        most = 0
        for turn in range(15):
            name = f"w-{worker}-{turn}"
            if mallory.post(path, {"metadata": {"name": name}}).code == 201:
                most = max(most, config_maps(target, "churner"))
                mallory.delete(f"{path}/{name}")
        return most

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(churn, range(8)))

    assert 2 <= max(seen) <= 4
    eventually(lambda: used(target, "churner") == {"configmaps": "1"}, "all is released")


def test_creates_while_a_quota_is_new(target: Target) -> None:
    mallory, path = settled_tenant(target, "early"), "/api/v1/namespaces/early/configmaps"

    def create(number: int) -> Answer:
        return mallory.post(path, {"metadata": {"name": f"e-{number:03}"}})

    with ThreadPoolExecutor(8) as pool:
        creating = [pool.submit(create, number) for number in range(120)]
        creating[10].result()
        quota = {"metadata": {"name": "bound"}, "spec": {"hard": {"configmaps": "60"}}}
        target.admin.post("/api/v1/namespaces/early/resourcequotas", quota).ok()
        codes = [item.result().code for item in creating]

    # More than sixty only if they were there before the quota.
    made = config_maps(target, "early")
    assert made == codes.count(201) + 1
    assert made == 60 or (made > 60 and 403 in codes)
    eventually(
        lambda: used(target, "early") == {"configmaps": str(made)}, "what is there is counted"
    )


def test_changes_its_own_quota(target: Target) -> None:
    mallory = bound(target, "cheater", {"count/configmaps": 3})
    quotas = "/api/v1/namespaces/cheater/resourcequotas"
    quota = mallory.get(f"{quotas}/bound").ok()
    raised = quota | {"spec": {"hard": {"count/configmaps": "1000"}}}
    forged = quota | {"status": {"hard": {"count/configmaps": "1000"}, "used": {}}}

    responses = {
        "replace": mallory.put(f"{quotas}/bound", raised),
        "patch": mallory.merge(f"{quotas}/bound", {"spec": {"hard": None}}),
        "status": mallory.put(f"{quotas}/bound/status", forged),
        "status patch": mallory.merge(f"{quotas}/bound/status", {"status": {"used": None}}),
        "delete": mallory.delete(f"{quotas}/bound"),
        "delete all": mallory.delete(quotas),
        "another": mallory.post(quotas, {"metadata": {"name": "mine"}}),
    }

    assert {name: answer.code for name, answer in responses.items()} == dict.fromkeys(
        responses, 403
    )
    assert mallory.get(f"{quotas}/bound").ok()["spec"] == {"hard": {"count/configmaps": "3"}}


def request(name: str, **exactly: object) -> Obj:
    return manifests.request("gpu", name, **exactly)


GREEDY: dict[str, list[Obj]] = {
    "one too many": [request("a", count=5)],
    "in two requests": [request("a", count=3), request("b", count=2)],
    "all there are": [request("a", allocationMode="All")],
    "as a second choice": [
        {
            "name": "a",
            "firstAvailable": [
                {"name": "small", "deviceClassName": "gpu", "count": 1},
                {"name": "large", "deviceClassName": "gpu", "count": 5},
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def gpu_tenant(target: Target) -> Caller:
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    target.admin.post(classes, manifests.device_class()).ok()
    return bound(target, "greedy", {GPUS: 4})


@pytest.mark.parametrize("requests", GREEDY.values(), ids=GREEDY.keys())
def test_claims_more_devices_than_its_quota(
    target: Target, gpu_tenant: Caller, requests: list[Obj]
) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/greedy/resourceclaims"
    spec = {"devices": {"requests": requests}}

    answer = gpu_tenant.post(path, {"metadata": {"generateName": "more-"}, "spec": spec})

    asked = 32 if "allocationMode" in str(requests) else 5
    assert answer.code == 403
    assert answer.json["message"].partition("forbidden: ")[2] == (
        f"exceeded quota: bound, requested: {GPUS}={asked}, used: {GPUS}=0, limited: {GPUS}=4"
    )
    assert used(target, "greedy") == {GPUS: "0"}


def test_resizes_a_pod_beyond_its_quota(target: Target) -> None:
    mallory = bound(target, "resizer", {"requests.cpu": 1})
    role = {
        "metadata": {"name": "resizes"},
        "rules": [{"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}],
    }
    group = "rbac.authorization.k8s.io"
    path = f"/apis/{group}/v1/namespaces/resizer"
    target.admin.post(f"{path}/roles", role).ok()
    binding = {
        "metadata": {"name": "resizes"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "resizes"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "admin-of-resizer"}],
    }
    target.admin.post(f"{path}/rolebindings", binding).ok()
    pods = "/api/v1/namespaces/resizer/pods"

    def container(cpu: str) -> Obj:
        return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}

    def resize(cpu: str) -> Answer:
        body = {"spec": {"containers": [container(cpu)]}}
        media = "application/strategic-merge-patch+json"
        return mallory.call("PATCH", f"{pods}/small/resize", body, media)

    mallory.post(pods, manifests.pod("small", {"containers": [container("500m")]})).ok()
    resize("1").ok()
    too_large = resize("1001m")

    assert (too_large.code, too_large.json["message"].partition("forbidden: ")[2]) == (
        403,
        "exceeded quota: bound, requested: requests.cpu=1m, used: requests.cpu=1,"
        " limited: requests.cpu=1",
    )
    assert used(target, "resizer") == {"requests.cpu": "1"}
    resize("250m").ok()
    assert used(target, "resizer") == {"requests.cpu": "250m"}


def test_claims_devices_by_a_template(target: Target) -> None:
    mallory = bound(target, "templated", {GPUS: 4})
    group = "/apis/resource.k8s.io/v1/namespaces/templated"
    spec: Obj = {"devices": {"requests": [request("a", count=3)]}}
    template = {"metadata": {"name": "three"}, "spec": {"spec": spec}}
    mallory.post(f"{group}/resourceclaimtemplates", template).ok()
    for name in ("first", "second"):
        claims = [{"name": "gpus", "resourceClaimTemplateName": "three"}]
        containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpus"}]}}]
        spec = {"containers": containers, "resourceClaims": claims}
        pod = {"metadata": {"name": name}, "spec": spec}
        mallory.post("/api/v1/namespaces/templated/pods", pod).ok()

    def refused() -> bool:
        events = mallory.get("/api/v1/namespaces/templated/events").ok()["items"]
        return any(
            event["reason"] == "FailedResourceClaimCreation"
            and f"exceeded quota: bound, requested: {GPUS}=3, used: {GPUS}=3" in event["message"]
            for event in events
        )

    eventually(refused, "an event reports that the second pod gets no claim")
    assert len(mallory.get(f"{group}/resourceclaims").ok()["items"]) == 1
    assert used(target, "templated") == {GPUS: "3"}


def test_takes_every_connection(tmp_path: Path) -> None:
    with (
        process("--store", "memory", "--max-connections-per-user", "10") as up,
        ExitStack() as stack,
    ):
        target = Target(up, tmp_path)
        mallory, alice = target.tenant("mallory"), target.tenant("alice")
        robots = [target.account("mallory", f"robot-{number}") for number in range(15)]
        idle = target.descriptors()
        for _ in range(30):
            stack.enter_context(mallory.connect())
        for robot in robots:
            held = stack.enter_context(robot.connect())
            held.sendall(robot.head("GET", "/api") + b"\r\n")
            assert parse(held.recv(1 << 16))[0] == 200

        eventually(lambda: target.descriptors() <= idle + 10 + 10 + 2)
        assert mallory.get("/api/v1/namespaces/mallory/pods").code == 200
        assert alice.get("/api/v1/namespaces/alice/pods").code == 200


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
VIEW = {
    "metadata": {"name": "robot-views"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
}
WATCH = "/api/v1/namespaces/default/pods?watch=1"


def test_holds_more_watches_than_connections(tmp_path: Path) -> None:
    with (
        process("--store", "memory", "--max-connections-per-user", "5") as up,
        ExitStack() as stack,
    ):
        target = Target(up, tmp_path)
        robot = target.account("default", "robot")
        watch = robot.head("GET", WATCH) + b"\r\n"
        target.admin.post(BINDINGS, VIEW).ok()
        codes = []
        for _ in range(7):
            held = stack.enter_context(robot.connect())
            held.sendall(watch)
            codes.append(parse(held.recv(1 << 16))[0])

        assert codes == [200] * 5 + [429] * 2
        assert target.admin.get("/api/v1/pods").code == 200


TWICE = {
    "Authorization": ("authorization: Bearer x\r\nauthorization: Bearer y\r\n", 401),
    "Impersonate-User": ("impersonate-user: mallory\r\nImpersonate-User: admin\r\n", 400),
    "Impersonate-Uid": (
        "impersonate-user: mallory\r\nimpersonate-uid: 1\r\nimpersonate-uid: 2\r\n",
        400,
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_the_certificate_identifies_it(target: Target, name: str) -> None:
    lines, code = TWICE[name]
    for caller in (target.admin, target.user("mallory")):
        with caller.connect() as connection:
            head = caller.head("GET", "/api", {"connection": "close"})
            connection.sendall(head + lines.encode() + b"\r\n")
            assert parse(receive(connection))[0] == code


UNFINISHED = {"content-type": "application/json", "content-length": "1000"}
LARGE = 800_000
REFUSED_BODIES = (
    'apiserver_flowcontrol_rejected_requests_total{flow_schema="global-default",'
    'priority_level="global-default",request_kind="requestBody"}'
)
MOST_MEMORY = 200.0
"""MiB that clients may cost who read nothing; without a bound it is several times as much."""


def bind(caller: Caller, namespace: str, account: str) -> None:
    """Make a service account an admin of its namespace."""
    group = "rbac.authorization.k8s.io"
    caller.post(
        f"/apis/{group}/v1/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": account},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ).ok()


def in_flight(target: Target) -> float:
    return target.metric('apiserver_current_inflight_requests{request_kind="mutating"}')


def unfinished(stack: ExitStack, target: Target, mallory: Caller, namespace: str) -> None:
    """Begin 200 writes, half of them as a service account, and finish none."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    account = {"impersonate-user": f"system:serviceaccount:{namespace}:default"}
    bind(mallory, namespace, "default")
    before = in_flight(target)
    for headers in (UNFINISHED, UNFINISHED | account):
        for _ in range(100):
            stack.enter_context(mallory.begin("POST", path, b"{", headers))
    target.wait_for(lambda: in_flight(target) >= before + 200)


def unread(
    stack: ExitStack, mallory: Caller, path: str, number: int, accept: str = "application/json"
) -> Iterator[bytes]:
    """Ask for something large and read the beginning of each answer only."""
    for _ in range(number):
        connection = mallory.begin("GET", path, headers={"accept": accept}, receive_buffer=4096)
        yield stack.enter_context(connection).recv(64)


def fill(target: Target, mallory: Caller, namespace: str) -> str:
    """Create ten megabytes of objects; return where."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(13):
        data = {"metadata": {"name": f"large-{number}"}, "data": {"k": "x" * LARGE}}
        mallory.post(path, data).ok()
    # Encodings are kept; the first of them is not what is measured.
    mallory.get(path).ok()
    target.forget_peak()
    return path


def node_works(target: Target, name: str) -> None:
    """Let a node report its status."""
    target.admin.post("/api/v1/nodes", {"metadata": {"name": name}})
    condition = {"type": "Ready", "status": "True"}
    status = {"status": {"conditions": [condition]}}
    target.node(name).merge(f"/api/v1/nodes/{name}/status", status).ok()


def test_takes_every_write_slot(target: Target) -> None:
    mallory = target.tenant("slots")
    with ExitStack() as stack:
        unfinished(stack, target, mallory, "slots")

        node_works(target, "node-of-slots")
        alice = target.tenant("alice-of-slots")
        path = "/api/v1/namespaces/alice-of-slots/configmaps"
        alice.post(path, {"metadata": {"name": "hers"}}).ok()
        # Not even mallory is refused: what has not arrived takes no slot.
        mallory.post("/api/v1/namespaces/slots/configmaps", {"metadata": {"name": "a"}}).ok()


def test_sends_bodies_that_never_end(target: Target) -> None:
    mallory = target.tenant("bodies")
    path, size = "/api/v1/namespaces/bodies/configmaps", 2_900_000
    headers = UNFINISHED | {"content-length": str(size)}
    before = target.memory()
    target.forget_peak()
    with ExitStack() as stack:
        for _ in range(120):
            connection = stack.enter_context(mallory.connect())
            # It is refused, and the connection closed, when it has sent too much.
            with suppress(ConnectionError, ssl.SSLError):
                head = mallory.head("POST", path, headers)
                connection.sendall(head + b"\r\n" + b" " * (size - 1))

        node_works(target, "node-of-bodies")
        assert target.peak_memory() - before < MOST_MEMORY
        assert target.metric(REFUSED_BODIES) > 0


def test_reads_nothing_of_what_it_asks_for(target: Target) -> None:
    mallory = target.tenant("unread")
    path = fill(target, mallory, "unread")
    before = target.memory()
    with ExitStack() as stack:
        responses = [*unread(stack, mallory, path, 30)]
        responses += unread(stack, mallory, f"{path}?watch=1", 25)

        assert all(answer.startswith(b"HTTP/1.1 ") for answer in responses)
        node_works(target, "node-of-unread")
        assert len(target.admin.get(path).ok()["items"]) >= 13
        assert target.peak_memory() - before < MOST_MEMORY


def test_reads_nothing_of_lists_in_yaml(target: Target) -> None:
    mallory = target.tenant("yaml")
    path = "/api/v1/namespaces/yaml/configmaps"
    data = {f"key-{at}": "value" * 4 for at in range(9_900)}
    for number in range(15):
        mallory.post(path, {"metadata": {"name": f"c-{number}"}, "data": data}).ok()
    mallory.get(path).ok()
    target.forget_peak()
    before = target.memory()
    with ExitStack() as stack:
        responses = [*unread(stack, mallory, path, 30, "application/yaml")]

        assert all(answer.startswith(b"HTTP/1.1 ") for answer in responses)
        assert target.peak_memory() - before < MOST_MEMORY


def test_asks_for_everything_and_waits(target: Target) -> None:
    """Slots, unread lists and unread watches together."""
    mallory, alice = target.tenant("greedy"), target.tenant("alice")
    path = fill(target, mallory, "greedy")
    before = target.memory()
    with ExitStack() as stack:
        unfinished(stack, target, mallory, "greedy")
        for asked, number in ((path, 30), (f"{path}?watch=1", 25)):
            assert all(unread(stack, mallory, asked, number))
        with target.bystander("/api/v1/nodes") as delays:
            for _ in range(5):
                node_works(target, "node-of-greedy")
                alice.get("/api/v1/namespaces/alice/configmaps").ok()
                target.admin.get("/api/v1/nodes/node-of-greedy").ok()

        assert not delays.failures
        assert target.peak_memory() - before < MOST_MEMORY


FORMS = {
    "plain": "application/json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_large_event_reaches_many_watches_that_nobody_reads(
    target: Target, namespace: str, form: str
) -> None:
    mallory = target.tenant(namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    large = {"metadata": {"name": "large"}, "data": {"k": "x" * LARGE}}
    mallory.post(path, large).ok()
    before = target.memory()
    target.forget_peak()
    with ExitStack() as stack:
        asked = f"{path}?watch=1&includeObject=Object"
        for first in unread(stack, mallory, asked, 300, FORMS[form]):
            assert first.startswith(b"HTTP/1.1 200")
        for number in range(4):
            mallory.put(f"{path}/large", large | {"data": {"k": f"{number}" * LARGE}}).ok()

        assert target.peak_memory() - before < MOST_MEMORY


def token(start: list[str], revision: int) -> str:
    reported = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(reported.encode()).rstrip(b"=").decode()


def watch(caller: Caller, path: str) -> ssl.SSLSocket:
    """Open a watch and read until it shows an object."""
    connection = caller.begin("GET", f"{path}?watch=1", headers={"connection": "close"})
    reported = b""
    while b'"ADDED"' not in reported:
        received = connection.recv(1 << 16)
        assert received, reported
        reported += received
    return connection


def test_goes_on_watching_after_its_rights_were_taken_away(target: Target) -> None:
    mallory = target.tenant("revoked")
    path = "/api/v1/namespaces/revoked/secrets"
    target.admin.post(path, {"metadata": {"name": "known"}}).ok()
    binding = (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/revoked/rolebindings/admin-of-revoked-admin"
    )
    with watch(mallory, path) as connection:
        target.admin.delete(binding).ok()
        rest = receive(connection)
        target.admin.post(path, {"metadata": {"name": "new"}}).ok()

    assert rest.endswith(b"0\r\n\r\n"), "the watch ends, and it ends cleanly"
    assert mallory.get(f"{path}?watch=1").code == 403


def test_goes_on_watching_after_its_account_was_deleted(target: Target, namespace: str) -> None:
    account = target.account(namespace, "robot")
    path = f"/api/v1/namespaces/{namespace}/secrets"
    target.admin.post(path, {"metadata": {"name": "known"}}).ok()
    bind(target.admin, namespace, "robot")
    with watch(account, path) as connection:
        target.admin.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/robot").ok()
        rest = receive(connection)

    assert rest.endswith(b"0\r\n\r\n")
    assert account.get(f"{path}?watch=1").code == 401


def test_makes_up_where_a_list_continues(target: Target, namespace: str) -> None:
    """A continue token is not signed; it must not lead anywhere else."""
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("pages")
    path = "/api/v1/namespaces/pages/secrets"
    mallory.post(path, {"metadata": {"name": "own"}}).ok()
    for start in ([namespace, ""], ["", ""], ["zzz", "zzz"], ["\0", "\0"], ["a/b", "c"]):
        for revision in (-1, 0, 1, 1 << 40, 1 << 70):
            page = mallory.get(f"{path}?limit=1&continue={token(start, revision)}")
            assert page.code in (200, 400, 410, 504), page
            if page.code == 200:
                names = [item["metadata"]["name"] for item in page.json["items"]]
                assert "theirs" not in names


SELECTORS = {
    "absent labels": ("labelSelector", ",".join(["!a"] * 20_000)),
    "values": ("labelSelector", f"a in ({','.join(map(str, range(20_000)))})"),
    "requirements": ("labelSelector", ",".join(f"a{n}!=b" for n in range(500))),
    "fields": ("fieldSelector", ",".join(["metadata.name!=a"] * 20_000)),
}


@pytest.mark.parametrize("name", SELECTORS)
def test_selects_by_more_than_anybody_can_compare(
    target: Target, namespace: str, name: str
) -> None:
    option, selector = SELECTORS[name]
    mallory = target.tenant(namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps?{option}="

    assert mallory.get(path + quote(selector)).code == 400
    assert mallory.get(f"{path}{quote(selector)}&watch=1").code == 400


# -- expressions within their cost limits, but many of them ----------------------------------------

PODS = "/api/v1/pods"
USUAL_WORK = 0.15
"""Seconds of the server's processor time between a question and its answer, nine times of ten."""
MOST_WORK = 1.0
"""The same for all answers: who asks may have to wait for a processor of this machine."""


def condition(obj: Obj, type_: str, status: str) -> str:
    """Return the message of a condition; empty if it has another."""
    for condition in obj.get("status", {}).get("conditions", ()):
        if (condition["type"], condition["status"]) == (type_, status):
            return str(condition["message"])
    return ""


def node_of(caller: Caller, namespace: str, name: str) -> str:
    pod = caller.get(f"/api/v1/namespaces/{namespace}/pods/{name}").ok()
    return str(pod["spec"].get("nodeName", ""))


def why_pending(caller: Caller, namespace: str, name: str) -> str:
    pod = caller.get(f"/api/v1/namespaces/{namespace}/pods/{name}").ok()
    return condition(pod, "PodScheduled", "False")


@contextmanager
def following(
    target: Target, path: str, decided: Callable[[Obj], object]
) -> Iterator[Callable[[int], list[str]]]:
    """Follow objects from now on; yield what returns the first names in the order of decisions.

    No poll can show the order, and while a busy machine takes its time, history is forgotten.
    """
    now = target.admin.get(path).ok()["metadata"]["resourceVersion"]
    asked = f"{path}?watch=true&resourceVersion={now}"
    with target.admin.begin("GET", asked) as connection, HTTPResponse(connection) as answer:
        answer.begin()

        def first(count: int) -> list[str]:
            names: list[str] = []
            while len(names) < count:
                obj = json.loads(answer.readline())["object"]
                assert obj["kind"] != "Status", obj
                name = str(obj["metadata"]["name"])
                if name not in names and decided(obj):
                    names.append(name)
            return names

        yield first


TIMED_OUT = "timed out trying to allocate devices"


def tried(pod: Obj) -> bool:
    """Report whether the scheduler bound a pod, or gave up its search.

    A pod whose claim the scheduler does not know yet has a condition before it is tried.
    """
    return bool(pod["spec"].get("nodeName") or TIMED_OUT in condition(pod, "PodScheduled", "False"))


def test_selectors_that_are_expensive_together(target: Target, namespace: str) -> None:
    mallory, alice = target.tenant("mallory-cel"), target.tenant(namespace)
    class_ = publish(target, "heavy-node", DEVICES)

    with target.bystander() as delays, following(target, PODS, tried) as first:
        run_pod(mallory, "mallory-cel", "heavy", class_, heavy(MOST_SELECTORS))
        ordinary = [{"cel": {"expression": f'device.attributes["{class_}.example.com"].index > 3'}}]
        run_pod(alice, namespace, "ordinary", class_, ordinary)
        assert eventually(lambda: node_of(alice, namespace, "ordinary")) == "heavy-node"
        decided = first(2)
        reported = why_pending(mallory, "mallory-cel", "heavy")

    assert decided == ["ordinary", "heavy"], "others do not wait for it"
    assert f"node heavy-node: {TIMED_OUT}" in reported
    assert not delays.failures
    assert delays.usual_work <= USUAL_WORK, delays
    assert delays.most_work <= MOST_WORK, delays
    before = target.processor_time()
    run_pod(alice, namespace, "later", class_, ordinary)
    eventually(lambda: node_of(alice, namespace, "later"))
    assert target.processor_time() - before < 2, "the heavy pod is not tried again immediately"
    mallory.delete("/api/v1/namespaces/mallory-cel/pods/heavy")


def test_devices_whose_combinations_never_end(target: Target, namespace: str) -> None:
    mallory, alice = target.tenant("mallory-search"), target.tenant(namespace)
    class_ = publish(target, "search-node", DEVICES)
    searches = [f"search-{number}" for number in range(3)]
    before = target.processor_time()
    undecided = set(searches)
    left: list[int] = []
    """How many searches went on when the ordinary pod was created."""

    def noted(pod: Obj) -> bool:
        is_ordinary, is_decided = pod["metadata"]["name"] == "ordinary", tried(pod)
        if is_decided:
            undecided.discard(pod["metadata"]["name"])
        if is_ordinary and not left:
            left.append(len(undecided))
        return is_decided

    with target.bystander() as delays, following(target, PODS, noted) as first:
        # Several: on a busy machine some are over before the ordinary pod is created.
        for name in searches:
            run_claim(mallory, "mallory-search", name, entangled(class_, constraints=2))
        ordinary = [{"cel": {"expression": f'device.attributes["{class_}.example.com"].index > 3'}}]
        run_pod(alice, namespace, "ordinary", class_, ordinary)
        assert eventually(lambda: node_of(alice, namespace, "ordinary")) == "search-node"
        decided = first(len(searches) + 1)
        names = [why_pending(mallory, "mallory-search", name) for name in searches]

    assert decided[-1] != "ordinary" or left[0] < 2, "others do not wait for them"
    assert all(f"node search-node: {TIMED_OUT}" in message for message in names)
    assert not delays.failures
    assert delays.usual_work <= USUAL_WORK, delays
    assert delays.most_work < (target.processor_time() - before) / 4, delays
    for name in searches:
        mallory.delete(f"/api/v1/namespaces/mallory-search/pods/{name}")


def test_a_placement_that_is_expensive(target: Target, namespace: str) -> None:
    tenant = target.tenant(namespace)
    for at in range(20):
        made = {"metadata": {"name": f"member-{at}"}, "spec": {"hubAcceptsClient": True}}
        target.admin.post(f"{CLUSTER}/v1/managedclusters", made).ok()
    target.admin.post(
        f"{CLUSTER}/v1beta2/namespaces/{namespace}/managedclustersetbindings",
        {"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}},
    ).ok()
    placements = f"{CLUSTER}/v1beta1/namespaces/{namespace}/placements"

    def place(name: str, expressions: list[str]) -> None:
        selector = {"celSelector": {"celExpressions": expressions}}
        spec = {
            "predicates": [{"requiredClusterSelector": selector}],
            # Nobody renews the leases of these clusters.
            "tolerations": [{"operator": "Exists"}],
        }
        tenant.post(placements, manifests.placement(name, spec, namespace)).ok()

    def satisfied(placement: Obj) -> str:
        return condition(placement, "PlacementSatisfied", "True")

    with target.bystander() as delays, following(target, placements, satisfied) as first:
        place("heavy", heavy_predicates(10))
        place("ordinary", ['managedCluster.metadata.name == "member-3"'])
        assert eventually(lambda: satisfied(tenant.get(f"{placements}/ordinary").ok()))
        assert eventually(lambda: satisfied(tenant.get(f"{placements}/heavy").ok()))
        decided = first(2)

    assert decided == ["ordinary", "heavy"], "others do not wait for it"
    assert not delays.failures
    assert delays.usual_work <= USUAL_WORK, delays
    assert delays.most_work <= MOST_WORK, delays


def test_a_rule_that_is_expensive_by_mistake(target: Target, namespace: str) -> None:
    tenant = target.tenant(namespace)
    class_ = publish(target, "ruled-node", DEVICES)
    rules = f"{RESOURCE}/devicetaintrules"

    with target.bystander() as delays:
        run_pod(tenant, namespace, "running", class_, [])
        assert eventually(lambda: node_of(tenant, namespace, "running")) == "ruled-node"
        target.admin.post(
            rules,
            {
                "metadata": {"name": "heavy"},
                "spec": {
                    "deviceSelector": {
                        "driver": "ruled-node.example.com",
                        "selectors": heavy(MOST_SELECTORS),
                    },
                    "taint": {"key": "example.com/heavy", "effect": "NoExecute"},
                },
            },
        ).ok()

        def problem() -> str:
            rule = target.admin.get(f"{rules}/heavy").ok()
            reported = condition(rule, "sully.dev/SelectorProblem", "True")
            return reported if "budget" in reported else ""

        reported = eventually(problem)
        run_pod(tenant, namespace, "later", class_, [])
        assert eventually(lambda: node_of(tenant, namespace, "later")) == "ruled-node"

    assert "evaluation exceeds the budget of 100000000 cost units" in reported
    assert node_of(tenant, namespace, "running") == "ruled-node"
    assert not delays.failures
    assert delays.usual_work <= USUAL_WORK, delays
    assert delays.most_work <= MOST_WORK, delays
    target.admin.delete(f"{rules}/heavy")


def test_selectors_that_take_long_to_compile(target: Target, namespace: str) -> None:
    tenant = target.tenant(namespace)
    class_ = publish(target, "long-node", 2)
    long = "[1].all(a,a>0)&&" * 550

    def claim(name: str, word: str) -> Obj:
        requests = []
        for number in range(4):
            texts = (f'{long}"{word}{number}-{at}" != ""' for at in range(6))
            selectors = [{"cel": {"expression": text}} for text in texts]
            requests.append(manifests.request(class_, f"r{number}", selectors=selectors))
        return manifests.body("ResourceClaim", name, {"devices": {"requests": requests}})

    claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
    pod = {
        "metadata": {"name": "long"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpus", "resourceClaimName": "long"}],
        },
    }

    with target.bystander() as delays:
        assert tenant.post(claims, claim("long", "a")).code in (201, 413)
        patch = {"spec": claim("long", "b")["spec"]}
        assert tenant.merge(f"{claims}/long", patch).code == 422
        tenant.post(f"/api/v1/namespaces/{namespace}/pods", pod).ok()
        assert eventually(lambda: why_pending(tenant, namespace, "long"))

    assert not delays.failures
    assert delays.usual_work <= USUAL_WORK, delays
    assert delays.most_work <= MOST_WORK, delays


LONG_TEXTS = {
    "questions": lambda text: {"spec": {"resourceAttributes": {"resource": text, "verb": "get"}}},
    "groups": lambda text: {"spec": {"resourceAttributes": {"group": text, "verb": "get"}}},
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_is_cached_by_long_texts(target: Target, name: str) -> None:
    """Ask about things with long names: what the server records must not grow with them."""
    mallory = target.tenant("long-texts")
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    mallory.post(reviews, LONG_TEXTS[name]("short")).ok()
    before = target.memory()

    for at in range(150):
        mallory.post(reviews, LONG_TEXTS[name](f"{at}-" + "x" * 1_000_000)).ok()

    eventually(lambda: target.memory() - before < 60)


def test_is_cached_by_long_labels(target: Target, namespace: str) -> None:
    mallory = target.tenant(namespace)
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    before = target.memory()

    for at in range(150):
        labels = {f"{at}-" + "x" * 1_000_000: "v"}
        made = mallory.post(maps, {"metadata": {"name": "a", "labels": labels}})
        assert made.code == 422

    eventually(lambda: target.memory() - before < 60)
