"""A hub without controllers, with two teams and three clusters, for the pages about placements.

The pages answer from what is stored; decisions are written here, as a controller would.
"""

from pathlib import Path
from typing import Any

import manifests
from serving import Http
from sully.api.cluster.types import PLACEMENT_LABEL, SET_LABEL
from sully.app import Config
from sully.machinery.compat import Compat

GROUP = "/apis/cluster.open-cluster-management.io"
CLUSTERS, SETS = f"{GROUP}/v1/managedclusters", f"{GROUP}/v1beta2/managedclustersets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PAGE = "/debug/placements"
MERGE = "application/merge-patch+json"
SHUNNED = {"key": "maintenance", "effect": "NoSelect"}

Obj = dict[str, Any]


def config(folder: Path, *, strict: bool = False) -> Config:
    return Config(
        data_dir=folder,
        port=0,
        store="memory",
        compat=Compat.KUBERNETES if strict else Compat.SULLY,
        controllers=frozenset(),
    )


async def furnish(http: Http) -> None:
    """Make two teams with a placement each, and three clusters."""
    (await http.post(SETS, {"metadata": {"name": "prod"}})).ok(201)
    for number, region in enumerate(("eu", "eu", "us")):
        labels = {SET_LABEL: "prod", "region": region}
        (await http.post(CLUSTERS, manifests.cluster(f"c{number}", labels=labels))).ok(201)
    for team in ("one", "two"):
        (await http.post("/api/v1/namespaces", {"metadata": {"name": team}})).ok(201)
        bindings = f"{GROUP}/v1beta2/namespaces/{team}/managedclustersetbindings"
        (await http.post(bindings, manifests.set_binding("prod", team))).ok(201)
        spec = {"numberOfClusters": 2}
        await place(http, team, spec)
        await decide(http, team, ["c0", "c1"])


async def place(http: Http, team: str, spec: Obj) -> None:
    body = manifests.placement("web", spec, team)
    (await http.post(f"{GROUP}/v1beta1/namespaces/{team}/placements", body)).ok(201)


async def decide(http: Http, team: str, names: list[str]) -> None:
    path = f"{GROUP}/v1beta1/namespaces/{team}/placementdecisions"
    metadata = {"name": "web-decision-1", "labels": {PLACEMENT_LABEL: "web"}}
    (await http.post(path, {"metadata": metadata})).ok(201)
    status = {"decisions": [{"clusterName": name, "reason": ""} for name in names]}
    patch = {"status": status}
    (await http.patch(f"{path}/web-decision-1/status", patch, MERGE)).ok(200)


async def respec(http: Http, spec: Obj, team: str = "one") -> None:
    path = f"{GROUP}/v1beta1/namespaces/{team}/placements/web"
    (await http.patch(path, {"spec": spec}, MERGE)).ok(200)


async def taint(http: Http, name: str, *taints: Obj) -> None:
    (await http.patch(f"{CLUSTERS}/{name}", {"spec": {"taints": list(taints)}}, MERGE)).ok(200)


async def grant(admin: Http, user: str, team: str, *verbs: str) -> None:
    rule = {
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["placements"],
        "verbs": list(verbs),
    }
    role = {"metadata": {"name": user}, "rules": [rule]}
    (await admin.post(f"{RBAC}/namespaces/{team}/roles", role)).ok(201)
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    (await admin.post(f"{RBAC}/namespaces/{team}/rolebindings", binding)).ok(201)


async def grant_clusters(admin: Http, user: str, *verbs: str) -> None:
    """Let a user read clusters."""
    rule = {
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclusters"],
        "verbs": list(verbs),
    }
    role: Obj = {"metadata": {"name": f"{user}-clusters"}, "rules": [rule]}
    (await admin.post(f"{RBAC}/clusterroles", role)).ok(201)
    named = {"apiGroup": "rbac.authorization.k8s.io", "name": role["metadata"]["name"]}
    binding = {
        "metadata": role["metadata"],
        "roleRef": {**named, "kind": "ClusterRole"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    (await admin.post(f"{RBAC}/clusterrolebindings", binding)).ok(201)
