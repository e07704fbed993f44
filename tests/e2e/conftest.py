"""A control plane as users run it, and a namespace for every test."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e import kubectls
from e2e.beside import Planes
from e2e.raw import KeptRaw, Raw
from e2e.shell import Shell
from sully.testing.cluster import Process

# Without any kubectl there is nothing to collect in these; one test reports it, see
# test_clients.py.
collect_ignore_glob = [] if kubectls.find() else ["test_kubectl_*.py"]

_NUMBERS = itertools.count()
_CLUSTER_WIDE = (
    "/api/v1/nodes",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/devicetaintrules",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1alpha3/resourceslicepatches",
    "/apis/cluster.open-cluster-management.io/v1/managedclusters",
    "/apis/sully.dev/v1alpha1/clustertaintpolicies",
    "/apis/sully.dev/v1alpha1/devicetaintpolicies",
    "/apis/sully.dev/v1alpha1/devicemaintenances",
)


@pytest.fixture(scope="session")
def plane(where: str, planes: Planes) -> Process:
    """Return the control plane of all tests that only use one."""
    return planes.of(where)


@pytest.fixture(scope="session")
def raw(plane: Process, tmp_path_factory: pytest.TempPathFactory) -> Raw:
    """Return the admin's access without a library."""
    return KeptRaw.admin(plane.kubeconfig, tmp_path_factory.mktemp("admin"))


@pytest.fixture
def namespace(raw: Raw) -> Iterator[str]:
    """Make a namespace; remove it and what is in no namespace afterwards."""
    name = f"ns-{next(_NUMBERS):04}"
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert raw.request("POST", "/api/v1/namespaces", made).code == 201
    yield name
    # No kubelet confirms that a pod on a node has ended.
    raw.request("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
    raw.request("DELETE", f"/api/v1/namespaces/{name}")
    for path in _CLUSTER_WIDE:
        raw.request("DELETE", path)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home folder: kubectl records there what the server serves."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def shell(
    kubectl: kubectls.Kubectl, plane: Process, namespace: str, home: Path, tmp_path: Path
) -> Shell:
    """Return a shell whose `kubectl` is the one under test, in a namespace of its own."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    return Shell.prepare(kubectl, yaml.safe_dump(config), namespace, tmp_path, home / str(kubectl))
