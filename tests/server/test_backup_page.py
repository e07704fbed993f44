"""`POST /backup`: who gets a copy of everything, and that it is noted."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from serving import connected
from sully.app import RunningControlPlane
from sully.testing.cluster import in_process

pytestmark = pytest.mark.slow


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[RunningControlPlane]:
    """Run a control plane that keeps its data."""
    async with in_process(store="sqlite", data_dir=tmp_path / "data") as running:
        yield running


async def test_an_admin_gets_a_database(plane: RunningControlPlane) -> None:
    async with connected(plane) as admin:
        answer = await admin.post("/backup", None)

    assert (answer.code, answer.header("content-type")) == (200, "application/vnd.sqlite3")
    assert answer.body.startswith(b"SQLite format 3\0")
    assert len(answer.body) == int(answer.header("content-length"))


@pytest.mark.parametrize(("user", "code"), [("bob", 403), ("", 401)])
async def test_others_do_not(plane: RunningControlPlane, user: str, code: int) -> None:
    async with connected(plane, user, ()) as other:
        answer = await other.post("/backup", None)

    # Without a name one is anonymous, who may be refused either way.
    assert answer.code in (code, 403)
    assert answer.json["kind"] == "Status"


async def test_to_read_every_page_is_not_enough(plane: RunningControlPlane) -> None:
    async with connected(plane) as admin:
        role = {
            "metadata": {"name": "reader"},
            "rules": [{"nonResourceURLs": ["*"], "verbs": ["get"]}],
        }
        binding = {
            "metadata": {"name": "reader"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "reader",
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "monitor"}
            ],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        (await admin.post(f"{rbac}/clusterroles", role)).ok(201)
        (await admin.post(f"{rbac}/clusterrolebindings", binding)).ok(201)
    async with connected(plane, "monitor", ()) as monitor:
        read = await monitor.get("/metrics")
        refused = [await monitor.post("/backup", None), await monitor.get("/backup")]

    assert read.code == 200
    assert [answer.code for answer in refused] == [403, 405]


async def test_it_is_noted_who_did(tmp_path: Path) -> None:
    async with (
        in_process(store="sqlite", data_dir=tmp_path) as plane,
        connected(plane, "auditor", ("system:masters",)) as admin,
    ):
        await admin.post("/backup", None)
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]

    noted = [line for line in lines if line.get("requestURI") == "/backup"]
    assert [line["user"]["username"] for line in noted] == ["auditor"]
