"""Problems that the schema of a kind declares come after those that are found by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from serving import Asgi, local

pytestmark = pytest.mark.asyncio(loop_scope="session")
Obj = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
ROLE = {"apiGroup": RBAC, "kind": "Role", "name": "r"}


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[Asgi]:
    async with local() as server:
        yield server


@dataclass(frozen=True)
class Case:
    path: str
    kind: str
    body: Obj
    want: list[str]
    old: Obj | None = None

    def manifest(self, content: Obj) -> Obj:
        _, prefix, *rest = self.path.split("/")
        version = "/".join(rest[:2]) if prefix == "apis" else rest[0]
        return {"apiVersion": version, "kind": self.kind, "metadata": {"name": "x"}, **content}


CASES = {
    "binding": Case(
        f"/apis/{RBAC}/v1/namespaces/default/rolebindings",
        "RoleBinding",
        {"roleRef": ROLE | {"name": ""}, "subjects": [{"kind": "Odd", "name": ""}]},
        ["subjects[0].kind", "subjects[0].name", "roleRef.name"],
    ),
    "binding to another role, which no schema declares": Case(
        f"/apis/{RBAC}/v1/namespaces/default/rolebindings",
        "RoleBinding",
        {"roleRef": ROLE | {"name": "s"}, "subjects": [{"kind": "Odd", "name": ""}]},
        ["subjects[0].kind", "roleRef", "subjects[0].name"],
        old={"roleRef": ROLE},
    ),
    "binding to a role without a name, into which the schema does not look": Case(
        f"/apis/{RBAC}/v1/namespaces/default/rolebindings",
        "RoleBinding",
        {"roleRef": ROLE | {"name": ""}, "subjects": [{"kind": "Odd", "name": ""}]},
        ["roleRef.name", "subjects[0].kind", "roleRef", "subjects[0].name"],
        old={"roleRef": ROLE},
    ),
    "secret of another type, which no schema declares": Case(
        "/api/v1/namespaces/default/secrets",
        "Secret",
        {"type": "kubernetes.io/tls"},
        ["type", "data[tls.crt]", "data[tls.key]"],
        old={"type": "Opaque"},
    ),
    "node of another provider, which no schema declares": Case(
        "/api/v1/nodes",
        "Node",
        {"spec": {"providerID": "b", "taints": [{"key": "a", "effect": "Odd"}]}},
        ["metadata.taints[0].effect", "spec.providerID"],
        old={"spec": {"providerID": "a"}},
    ),
    "binding of an admission policy": Case(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"paramRef": {"name": "p", "parameterNotFoundAction": "Odd"}}},
        ["spec.paramRef.parameterNotFoundAction", "spec.policyName", "spec.validationActions"],
    ),
    "storage class": Case(
        "/apis/storage.k8s.io/v1/storageclasses",
        "StorageClass",
        {"provisioner": "", "reclaimPolicy": "Odd"},
        ["reclaimPolicy", "provisioner"],
    ),
    "changed storage class": Case(
        "/apis/storage.k8s.io/v1/storageclasses",
        "StorageClass",
        {"provisioner": "b", "parameters": {"": "v"}, "volumeBindingMode": "WaitForFirstConsumer"},
        ["parameters", "provisioner", "parameters", "volumeBindingMode"],
        old={"provisioner": "a"},
    ),
    "endpoints": Case(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        "EndpointSlice",
        {
            "addressType": "Odd",
            "ports": [{"name": "-"}],
            "endpoints": [{"addresses": []}, {"addresses": ["a"], "hostname": "-"}],
        },
        ["ports[0].name", "endpoints[1].hostname", "addressType", "endpoints[0].addresses"],
    ),
    "replication controller": Case(
        "/api/v1/namespaces/default/replicationcontrollers",
        "ReplicationController",
        {"metadata": {"name": "X"}, "spec": {"minReadySeconds": -1, "replicas": -1}},
        [
            "spec.selector",
            "spec.template",
            "metadata.name",
            "spec.replicas",
            "spec.minReadySeconds",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_order(case: Case, server: Asgi) -> None:
    if case.old is not None:
        (await server.post(case.path, case.manifest(case.old))).ok(201)

    body = case.manifest(case.body)
    if case.old is None:
        got = await server.post(case.path, body)
    else:
        got = await server.put(f"{case.path}/x", body)

    assert got.code == 422
    assert [cause["field"] for cause in got.json["details"]["causes"]] == case.want
