"""The Helm chart: Helm renders from it what `sully install` creates, and refuses wrong values."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from architecture.project import ROOT
from sully.install.chart import files
from sully.install.chart_values import VALUES
from sully.install.manifests import OPTIONAL, manifests
from sully.install.workload import Settings

Obj = dict[str, Any]
CHART = ROOT / "deploy/chart"
IMAGE = "registry.example/sully:1"
KEEP = "helm.sh/resource-policy"
MONITOR = [
    word
    for name in ("serviceMonitor", "alerts", "dashboard")
    for word in ("--set", f"{name}.enabled=true")
]
SAME: dict[str, tuple[list[str], Settings]] = {
    "as it is": ([], Settings(image=IMAGE)),
    "more replicas": (["--set", "replicas=3"], Settings(image=IMAGE, replicas=3)),
    "another namespace": (["-n", "ops"], Settings(image=IMAGE, namespace="ops")),
    "as the evictor": (["--set", "evictor=sully"], Settings(image=IMAGE, evictor="sully")),
}
"""Values of the chart and the options of `sully install` that mean the same."""


@pytest.fixture(scope="module")
def helm() -> str:
    result = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
    if result is None:
        pytest.skip("no helm: there is none for this platform among the development tools")
    return result


def render(helm: str, *flags: str, image: str = IMAGE) -> subprocess.CompletedProcess[str]:
    namespace = () if "-n" in flags else ("-n", "sully-system")
    command = [helm, "template", "sully", str(CHART), "--kube-version=1.37.0", *namespace]
    return subprocess.run(
        [*command, "--set", f"image={image}", *flags], capture_output=True, text=True, check=False
    )


def rendered(helm: str, *flags: str) -> dict[tuple[str, str], Obj]:
    done = render(helm, *flags)
    assert done.returncode == 0, done.stderr
    return by_name(yaml.safe_load_all(done.stdout))


def by_name(objects: Any) -> dict[tuple[str, str], Obj]:
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects if obj}


def test_the_files_are_current() -> None:
    present = {f"chart/{p.relative_to(CHART)}" for p in CHART.rglob("*") if p.is_file()}

    assert present == set(files())
    assert [
        path for path, text in files().items() if (ROOT / "deploy" / path).read_text() != text
    ] == []


@pytest.mark.parametrize(("flags", "settings"), SAME.values(), ids=SAME)
def test_helm_renders_what_install_creates(helm: str, flags: list[str], settings: Settings) -> None:
    want = by_name(obj for objects in manifests(settings).values() for obj in objects)
    del want["Namespace", settings.namespace]  # Helm creates it
    result = rendered(helm, *flags, *MONITOR)
    for obj in result.values():
        if obj["kind"] == "CustomResourceDefinition":
            assert obj["metadata"]["annotations"].pop(KEEP) == "keep"
            if not obj["metadata"]["annotations"]:
                del obj["metadata"]["annotations"]

    assert result == want


SWITCHES = {
    "podDisruptionBudget": "PodDisruptionBudget",
    "networkPolicy": "NetworkPolicy",
    "crds": "CustomResourceDefinition",
}


def test_parts_can_be_left_out(helm: str) -> None:
    flags = [word for name in SWITCHES for word in ("--set", f"{name}.enabled=false")]
    kinds = {kind for kind, _ in rendered(helm, *flags)}

    unwanted = {"ServiceMonitor", "PrometheusRule", "ConfigMap", "PriorityClass"}
    assert kinds.isdisjoint({*SWITCHES.values(), *unwanted})
    assert {"Deployment", "Service", "ClusterRole"} <= kinds
    assert "ServiceMonitor" in OPTIONAL


def test_pods_can_be_given_more(helm: str) -> None:
    flags = ["--set", "priorityClassName=system-cluster-critical", "--set", "nodeSelector.disk=ssd"]
    flags += ["--set", "tolerations[0].operator=Exists", "--set", "imagePullSecrets[0].name=pull"]
    flags += ["--set", "resources.limits.memory=2Gi"]
    result = rendered(helm, *flags)["Deployment", "sully-controllers"]
    pod = result["spec"]["template"]["spec"]

    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "2Gi"}


def test_notifications_are_configured_by_a_secret(helm: str) -> None:
    result = rendered(helm, "--set", "notifications.secretName=notes")
    pod = result["Deployment", "sully-controllers"]["spec"]["template"]["spec"]
    (mounted,) = (one for one in pod["volumes"] if one["name"] == "notifications")
    container = pod["containers"][0]

    assert container["args"][-1] == "--notifications=/etc/sully/config.yaml"
    assert mounted["secret"] == {"secretName": "notes"}
    assert container["volumeMounts"][-1]["mountPath"] == "/etc/sully"


def test_prometheus_servers_are_configured_by_a_secret(helm: str) -> None:
    both = ("--set", "prometheus.secretName=prom", "--set", "notifications.secretName=notes")
    result = rendered(helm, *both)
    pod = result["Deployment", "sully-controllers"]["spec"]["template"]["spec"]
    (mounted,) = (one for one in pod["volumes"] if one["name"] == "prometheus")
    container = pod["containers"][0]

    assert container["args"][-2:] == [
        "--notifications=/etc/sully/config.yaml",
        "--prometheus-servers=/etc/sully-prometheus/servers.yaml",
    ]
    assert mounted["secret"] == {"secretName": "prom"}
    assert container["volumeMounts"][-1]["mountPath"] == "/etc/sully-prometheus"


def test_a_priority_class_can_be_created(helm: str) -> None:
    flags = ["--set", "priorityClassName=sully", "--set", "priorityClass.create=true"]
    made = rendered(helm, *flags, "--set", "priorityClass.value=7")["PriorityClass", "sully"]

    assert (made["value"], made["globalDefault"]) == (7, False)


WRONG = {
    "a priority class without a name": (["--set", "priorityClass.create=true"], "its name"),
    "an unknown evictor": (["--set", "evictor=nobody"], "evictor"),
    "no replicas": (["--set", "replicas=0"], "replicas"),
    "a typing error": (["--set", "replica=3"], "replica"),
    "one inside": (["--set", "networkPolicy.enable=false"], "networkPolicy"),
    "no image": (["--set", "image="], "there is no published image"),
}


@pytest.mark.parametrize(("flags", "text"), WRONG.values(), ids=WRONG)
def test_wrong_values_are_refused(helm: str, flags: list[str], text: str) -> None:
    done = render(helm, *flags)

    assert done.returncode != 0
    assert text in done.stderr


def test_the_guide_has_every_value() -> None:
    page = (ROOT / "docs/guides/helm.md").read_text()

    assert [value.path for value in VALUES if f"| `{value.path}` |" not in page] == []
