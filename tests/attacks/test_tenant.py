"""A tenant: somebody with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

from typing import Any

import pytest

from hostile.target import Target

pytestmark = pytest.mark.slow


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403


def test_reads_without_a_trace(target: Target, namespace: str) -> None:
    """Look around where one may not, by every kind of read, and as somebody else."""
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
        wanted = ("admin-of-snooping", verb, path.partition("?")[0])
        (event,) = target.audited(lambda each, wanted=wanted: _asked(each) == wanted)
        assert event["responseStatus"]["code"] == 403


def _asked(event: dict[str, Any]) -> tuple[str, str, str]:
    return event["user"].get("username", ""), event["verb"], event.get("requestURI", "")


def test_acts_as_somebody_else_without_a_trace(target: Target, namespace: str) -> None:
    groups = {"impersonate-group": "system:masters", "impersonate-extra-x": "y" * 4000}
    headers = {"impersonate-user": "somebody-else", **groups}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    assert target.admin.call("GET", path, headers=headers).code == 200

    (event,) = target.audited(
        lambda each: each.get("impersonatedUser", {}).get("username") == "somebody-else"
    )
    assert event["user"]["username"] == "attacks-admin"
    assert event["verb"] == "list"
    assert "system:masters" in event["impersonatedUser"]["groups"]


def test_writes_long_entries_into_the_audit_log(target: Target, namespace: str) -> None:
    """Say as much as possible in every field, to push out what others did."""
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
    target.audited(lambda each: each.get("objectRef", {}).get("name", "").startswith("nnn"))

    log = (target.up.data_dir / "audit.log").read_bytes()
    assert max(map(len, log.splitlines())) < 8 << 10


def test_asks_a_what_if_which_clusters_exist(target: Target) -> None:
    clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
    target.admin.post(clusters, {"metadata": {"name": "hidden"}, "spec": {}}).ok()
    mallory = target.tenant("guessing")
    assert mallory.get(f"{clusters}/hidden").code == 403

    answers = [
        mallory.post("/debug/placements/guessing/", {"changes": [{"drop": {"cluster": name}}]})
        for name in ("hidden", "no-such")
    ]

    assert [answer.code for answer in answers] == [403, 403]
    assert answers[0].body.replace(b"hidden", b"no-such") == answers[1].body


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
    assert [(each["what"], each["by"]) for each in status["changes"]] == [
        ("paused", "saboteur"),
        ("resumed", "saboteur"),
    ]
    assert status["liftedBy"] == "saboteur"


def _record(target: Target, rule: str) -> dict[str, Any] | None:
    path = f"/apis/sully.dev/v1alpha1/taintrecords?labelSelector=sully.dev/rule={rule}"
    found = target.admin.get(path).ok()["items"]
    # Its status comes with a second write.
    return found[0] if found and found[0].get("status", {}).get("taint") else None


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
