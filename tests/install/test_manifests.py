"""What `sully install` brings: rights that suffice and no more, pods that may do nothing else."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.kubectls import Kubectl, find
from install.identities import IDENTITIES
from sully.cli.main import main
from sully.controller_setup import CONTROLLERS
from sully.install.folders import files
from sully.install.manifests import manifests
from sully.install.rbac import rules_of
from sully.install.workload import DEFAULT, Settings
from sully.server.authorization.policy.components import CONTROLLERS as AGENT_RULES
from sully.server.authorization.policy.components import ROLES

Obj = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
NEW_ENOUGH = 27
"""The first kubectl whose kustomize knows components as ours are written."""


def objects(settings: Settings) -> list[Obj]:
    return [item for manifest in manifests(settings).values() for item in manifest]


def by_name(result: list[Obj]) -> dict[tuple[str, str], Obj]:
    return {(item["kind"], item["metadata"]["name"]): item for item in result}


def rights(rules: list[Obj]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_every_controller_can_be_installed() -> None:
    assert IDENTITIES.keys() == CONTROLLERS.keys()
    known = {name for names in IDENTITIES.values() for name in names}
    # The machines and members of `sully up` are not for real clusters.
    assert AGENT_RULES.keys() - known == {"simulated-nodes", "simulated-clusters"}


def test_our_scheduler_needs_less_than_that_of_kubernetes() -> None:
    names = ("system:kube-scheduler", "system:volume-scheduler")
    theirs = [rule for x in ROLES if x["metadata"]["name"] in names for rule in x["rules"]]
    more = rights(rules_of("scheduling")) - rights(theirs)

    assert {resource for _, resource, _ in more} == {"resourceslicepatches"}
    assert {verb for _, _, verb in more} == {"get", "list", "watch"}


@pytest.mark.parametrize("name", DEFAULT)
def test_nothing_installed_may_touch_everything(name: str) -> None:
    result = rights(rules_of(name))

    assert "*" not in {part for item in result for part in item}
    assert not {resource for _, resource, _ in result} & {"secrets", "configmaps", "clusterroles"}


@dataclass(frozen=True)
class Case:
    settings: Settings
    roles: set[str]
    arguments: set[str]


ALWAYS = {"capabilities", "metrics-auth"}
CASES = {
    "as it comes": Case(
        Settings(),
        {*ALWAYS, *DEFAULT} - {"eviction"},
        {"--evictor=server", "--lease=sully-system/sully-controllers"},
    ),
    "as the evictor": Case(Settings(evictor="sully"), {*ALWAYS, *DEFAULT}, {"--evictor=sully"}),
    "chosen by name": Case(
        Settings(controllers=("placement",), named=True, namespace="hub"),
        {*ALWAYS, "placement"},
        {"--only=placement", "--lease=hub/sully-controllers"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_rights_follow_what_runs(case: Case) -> None:
    result = by_name(objects(case.settings))

    roles = {name for kind, name in result if kind == "ClusterRole"}
    bound = {name for kind, name in result if kind == "ClusterRoleBinding"}
    # The admin configures who collects metrics.
    roles.remove("sully:metrics-reader")
    assert roles == bound == {f"sully:{role}" for role in case.roles}
    (container,) = result["Deployment", "sully-controllers"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert case.arguments <= set(container["args"])


def test_who_is_bound_is_who_runs() -> None:
    result = by_name(objects(Settings(namespace="elsewhere")))
    pod = result["Deployment", "sully-controllers"]["spec"]["template"]["spec"]
    bindings = [entry for (kind, _), entry in result.items() if kind.endswith("RoleBinding")]

    account = {
        "kind": "ServiceAccount",
        "name": pod["serviceAccountName"],
        "namespace": "elsewhere",
    }
    assert [binding["subjects"] for binding in bindings] == [[account]] * len(bindings)


def test_pods_may_do_nothing_on_their_node() -> None:
    result = by_name(objects(Settings()))
    pod = result["Deployment", "sully-controllers"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    labels = result["Namespace", "sully-system"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_agents_on_nodes_are_not_installed_unless_asked_for() -> None:
    assert ("DaemonSet", "sully-monitor") not in by_name(objects(Settings()))


def test_an_agent_may_only_report_and_do_nothing_on_its_node() -> None:
    result = by_name(objects(Settings(monitor="nvml", namespace="elsewhere")))
    pod = result["DaemonSet", "sully-monitor"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    role = result["ClusterRole", "sully:monitor"]

    assert rights(role["rules"]) == {
        ("sully.dev", "devicehealths", verb) for verb in ("create", "get", "update")
    }
    assert result["ClusterRoleBinding", "sully:monitor"]["subjects"] == [
        {"kind": "ServiceAccount", "name": pod["serviceAccountName"], "namespace": "elsewhere"}
    ]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "volumes"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_the_agent_takes_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    result = by_name(objects(Settings(monitor="nvml")))
    (container,) = result["DaemonSet", "sully-monitor"]["spec"]["template"]["spec"]["containers"]

    assert main([*container["args"], "--kubeconfig", "absent"]) == 1
    assert "absent" in capsys.readouterr().err


def test_metrics_are_not_for_everybody() -> None:
    result = by_name(objects(Settings()))
    spec = result["NetworkPolicy", "sully-controllers"]["spec"]
    (container,) = result["Deployment", "sully-controllers"]["spec"]["template"]["spec"][
        "containers"
    ]

    assert spec["podSelector"]["matchLabels"].items() <= (
        result["Deployment", "sully-controllers"]["spec"]["template"]["metadata"]["labels"].items()
    )
    (rule,) = spec["ingress"]
    assert [port["port"] for port in rule["ports"]] == [container["ports"][0]["containerPort"]]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_the_program_takes_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    deployment = by_name(objects(Settings()))["Deployment", "sully-controllers"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert main([*container["args"], "--kubeconfig", "absent"]) == 1
    assert "absent" in capsys.readouterr().err


def test_the_folders_are_written_as_they_should_be() -> None:
    on_disk = {str(path.relative_to(DEPLOY)): path.read_text() for path in DEPLOY.rglob("*.yaml")}
    folders = {path: text for path, text in on_disk.items() if not path.startswith("chart/")}

    assert folders == files()


def kustomized(kubectl: Kubectl, folder: Path) -> list[Obj]:
    done = subprocess.run(
        [kubectl.path, "kustomize", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.e2e
@pytest.mark.parametrize("kubectl", find(), ids=str)
def test_the_base_is_what_install_does(kubectl: Kubectl) -> None:
    want = by_name(objects(Settings()))
    del want["ServiceMonitor", "sully-controllers"], want["PrometheusRule", "sully-controllers"]
    del want["ConfigMap", "sully-dashboard"]

    assert by_name(kustomized(kubectl, DEPLOY / "base")) == want


@pytest.mark.e2e
@pytest.mark.parametrize("kubectl", [item for item in find() if item.minor >= NEW_ENOUGH], ids=str)
def test_the_components_are_what_install_does(kubectl: Kubectl, tmp_path: Path) -> None:
    for path, text in files().items():
        (tmp_path / "deploy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "deploy" / path).write_text(text)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    parts = {
        "resources": ["../deploy"],
        "components": ["../deploy/evictor", "../deploy/monitor-nvml", "../deploy/monitoring"],
    }
    (overlay / "kustomization.yaml").write_text(json.dumps(parts))

    want = by_name(objects(Settings(evictor="sully", monitor="nvml")))
    assert by_name(kustomized(kubectl, overlay)) == want


REFUSED = {
    "neither": [],
    "both": ["--dry-run", "--apply"],
}


@pytest.mark.parametrize("flags", REFUSED.values(), ids=REFUSED.keys())
def test_refused_flags(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", *flags]) == 2
    assert "exactly one of --dry-run and --apply is required" in capsys.readouterr().err


OFFLINE = {
    "no such controller": (["--only", "nobody"], "unknown controller nobody"),
    "a second evictor": (["--only", "eviction"], "--only eviction: the server evicts pods"),
    "no replica": (
        ["--replicas", "0"],
        '--replicas: invalid number "0" (a whole number, 1 or more)',
    ),
}


@pytest.mark.parametrize(("flags", "text"), OFFLINE.values(), ids=OFFLINE.keys())
def test_refused_values(flags: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--dry-run", "--evictor", "server", *flags]) == 2
    assert text in capsys.readouterr().err


def test_a_dry_run_needs_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--image", "r/s:1", "-n", "mine", "--replicas", "3"]

    assert main(["install", "--dry-run", "--evictor", "server", *flags]) == 0
    result = by_name(list(yaml.safe_load_all(capsys.readouterr().out)))
    assert list(result.values()) == objects(Settings(image="r/s:1", namespace="mine", replicas=3))
