"""Every end-to-end test runs with the controllers in both places, or it is reported why not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from architecture.project import ROOT
from e2e import trail
from e2e.beside import INSIDE, INSIDE_ONLY, WHERE, forms

FORBIDDEN = {"annotations": {"authorization.k8s.io/decision": "forbid"}}
ALLOWED = {"annotations": {"authorization.k8s.io/decision": "allow"}}
INSIDER = "system:serviceaccount:kube-system:replicaset-controller"


@pytest.mark.parametrize("name", INSIDE_ONLY)
def test_what_runs_once_is_there_and_has_a_reason(name: str) -> None:
    path, _, test = name.partition("::")

    assert (ROOT / "tests" / path).exists()
    assert not test or f"def {test}(" in (ROOT / "tests" / path).read_text()
    assert INSIDE_ONLY[name].strip()


def test_forms() -> None:
    assert forms("e2e/test_device_stories.py", "test_any") == WHERE
    assert forms("e2e/test_up.py", "test_any") == (INSIDE,)
    assert forms("robust/inputs/test_bombs.py", "test_any") == (INSIDE,)
    assert forms("e2e/test_simulated_nodes.py", "test_wrong_usage") == (INSIDE,)
    assert forms("e2e/test_simulated_nodes.py", "test_another") == WHERE


def log(path: Path, *events: Mapping[str, object]) -> Path:
    """Write an audit log of requests for pods."""
    usual = {"verb": "list", "objectRef": {"resource": "pods"}, "responseStatus": {"code": 200}}
    path.write_text("".join(json.dumps({**usual, **event}) + "\n" for event in events))
    return path


OURS = {"user": {"username": trail.USER}, "userAgent": "kube-scheduler/1"}
WRONG = {
    "a refusal": ({**OURS, **FORBIDDEN}, "refused: list"),
    "a controller inside": ({"user": {"username": INSIDER}, **ALLOWED}, INSIDER),
    "the scheduler inside": ({"user": {"username": "system:kube-scheduler"}, **ALLOWED}, "acted"),
}


@pytest.mark.parametrize(("event", "reported"), WRONG.values(), ids=WRONG.keys())
def test_what_must_not_happen_on_a_server_with_controllers_beside(
    event: dict[str, object], reported: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=reported):
        trail.follow(log(tmp_path / "audit.log", {**OURS, **ALLOWED}, event))


def test_a_server_whose_controllers_did_nothing_shows_nothing(tmp_path: Path) -> None:
    admin = {"user": {"username": "kubernetes-admin"}, **ALLOWED}
    with pytest.raises(AssertionError, match="nothing of the controllers"):
        trail.follow(log(tmp_path / "audit.log", admin))


def test_what_was_used_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(trail.FOLDER, str(tmp_path))
    reference = {"objectRef": {"apiGroup": "g", "resource": "r", "subresource": "status"}}

    trail.follow(log(tmp_path / "audit.log", {**OURS, **ALLOWED}, {**OURS, **ALLOWED, **reference}))

    assert trail.recorded_uses(tmp_path) == {
        trail.Use("kube-scheduler", "list", "", "pods"),
        trail.Use("kube-scheduler", "list", "g", "r/status"),
    }
