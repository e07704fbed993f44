"""What `sully doctor` concludes about an API server and what is installed there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sully.domain.capabilities.control_plane import RULES_GATE, ControlPlane
from sully.domain.capabilities.offers import OWN_KINDS, Offer
from sully.domain.coordination import Lease, LeaseSpec
from sully.domain.diagnosis.findings import Finding, listed
from sully.domain.diagnosis.leases import check_lease
from sully.domain.diagnosis.rights import AccessQuestion, check_rights, questions
from sully.domain.diagnosis.servers import (
    check_clock,
    check_gates,
    check_health,
    check_kinds,
    check_versions,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
KUBERNETES = Offer(
    version="v1.37.0",
    minor=37,
    own=False,
    devices="v1",
    device_fields=frozenset(("name", "taints")),
    rules="v1",
)
OURS = replace(KUBERNETES, version="v1.37.0+sully-2.0.0", own=True)
PLANE = ControlPlane.KUBERNETES


def states(*findings: Finding) -> list[str]:
    for finding in findings:
        assert bool(finding.remedy) == (finding.state != "ok"), finding
    return [finding.state for finding in findings]


def test_health() -> None:
    good = check_health("[+]ping ok\n[+]store ok\nreadyz check passed\n")
    bad = check_health("", "the server answered 500: [+]ping ok\n[-]store failed: no leader\n")
    other = check_health("", "the server answered 503 Service Unavailable:\n try later")

    assert states(good, bad, other) == ["ok", "failure", "failure"]
    assert good.message == "2 checks of the server passed"
    assert bad.message == "failed checks of the server: store"
    assert other.message == "the server answered 503 Service Unavailable: try later"


@pytest.mark.parametrize(
    ("seconds", "state", "message"),
    [
        (1, "ok", "within 2 seconds of the server's"),
        (9, "warning", "9 seconds ahead of the server's"),
        (-9, "warning", "9 seconds behind the server's"),
        (-60, "failure", "60 seconds behind the server's"),
    ],
)
def test_clock(seconds: int, state: str, message: str) -> None:
    finding = check_clock(NOON, NOON + timedelta(seconds=seconds))

    assert states(finding) == [state]
    assert finding.message == message


def test_a_server_without_a_clock() -> None:
    assert states(check_clock(None, NOON)) == ["warning"]


VERSIONS: dict[str, tuple[Offer, list[str]]] = {
    "the same": (OURS, ["ok"]),
    "an older server": (replace(OURS, version="v1.37.0+sully-1.9.0"), ["warning"]),
    "Kubernetes": (KUBERNETES, ["ok", "ok"]),
    "before device taints": (replace(KUBERNETES, minor=32, rules=""), ["failure", "failure"]),
    "no devices": (replace(KUBERNETES, devices="", too_old=("v1alpha2",)), ["ok", "failure"]),
    "dropped taints": (replace(KUBERNETES, minor=34, rules=""), ["ok", "failure"]),
}


@pytest.mark.parametrize(("offer", "want"), VERSIONS.values(), ids=VERSIONS)
def test_versions(offer: Offer, want: list[str]) -> None:
    assert states(*check_versions("2.0.0", offer)) == want


def test_feature_gates() -> None:
    known = replace(PLANE, gates={RULES_GATE: True}, gates_from="metrics")
    off = replace(PLANE, gates={RULES_GATE: False}, gates_from="metrics")

    assert states(*check_gates(known)) == ["ok"]
    assert states(*check_gates(off)) == ["warning"]
    assert states(*check_gates(PLANE)) == ["warning"]


def test_kinds() -> None:
    assert states(check_kinds(OWN_KINDS, installed=True)) == ["ok"]
    assert states(check_kinds((), installed=False)) == ["warning"]
    assert states(check_kinds((), installed=True)) == ["failure"]


def lease(seconds: float = 0, **spec: Any) -> Lease:
    renewed = NOON - timedelta(seconds=seconds)
    held = LeaseSpec(holder_identity="a", renew_time=renewed, lease_duration_seconds=15)
    return Lease(spec=replace(held, **spec))


@pytest.mark.parametrize(
    ("result", "needed", "state"),
    [
        (lease(1), True, "ok"),
        (lease(16), True, "failure"),
        (lease(holder_identity=""), True, "failure"),
        (lease(renew_time=None), True, "failure"),
        (Lease(), True, "failure"),
        (None, True, "warning"),
        (None, False, "ok"),
    ],
)
def test_leases(result: Lease | None, needed: bool, state: str) -> None:
    assert states(check_lease("a/b", result, NOON, needed=needed)) == [state]


def test_questions_are_what_a_role_grants() -> None:
    rules = [
        {"apiGroups": ["", "apps"], "resources": ["pods/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]

    asked = list(questions(rules, "ns"))

    assert [str(question) for question in asked] == [
        "patch pods/status",
        "patch pods.apps/status",
        "get pods",
    ]
    assert asked[2].attributes() == {
        "resource": "pods", "verb": "get", "name": "a", "namespace": "ns",
    }  # fmt: skip


def test_rights() -> None:
    denied = [AccessQuestion("apps", "deployments", verb) for verb in ("watch", "get")]

    assert states(check_rights("history", [])) == ["ok"]
    finding = check_rights("history", denied)
    assert states(finding) == ["failure"]
    assert finding.message == "not granted: get deployments.apps, watch deployments.apps"


def test_a_list_of_many_is_short() -> None:
    assert listed(range(5)) == "0, 1, 2, 3, 4"
    assert listed(range(7)) == "0, 1, 2, 3, 4 and 2 more"
