"""`sully capabilities`, and what `sully controllers` and `sully install` make of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from client.foreign import serving
from e2e.beside import APPLY
from servers import answering, made, recorded, with_kinds, without_group
from sully.domain.capabilities.offers import OWN_KINDS
from sully.testing.forkserver import run

pytestmark = pytest.mark.slow

WITH_KINDS = with_kinds(
    recorded(), "sully.dev", "v1alpha1", "resourceslicepatches", "evictionrecords", "taintrecords"
)
TABLE = """\
SUBJECT        SERVER                                           SULLY
version        v1.37.0                                          runs what its controllers do not
devices        resource.k8s.io/v1                               schedules: only for pods with schedulerName: sully
device taints  yes                                              honors them
taint rules    v1 by driver, pool, device                       deletes expired rules: no other controller does
eviction       its own                                          no: Kubernetes evicts by default since 1.36
own kinds      ResourceSlicePatch, EvictionRecord, TaintRecord  records evictions and reports on patches
clusters       none                                             no: the server has no Open Cluster Management
"""  # noqa: E501 - as it is printed
GATES = """
FEATURE GATE                        SERVER                                 EFFECT
DRADeviceTaints                     unknown: its metrics are not readable  taints of devices have an effect, as far as known
DRADeviceTaintRules                 unknown: its metrics are not readable  DeviceTaintRules have an effect, as far as known
DRAAdminControlledDeviceAttributes  none                                   ResourceSlicePatches have no effect: kube-scheduler and kube-controller-manager do not read ResourceSlicePatches
"""  # noqa: E501 - as it is printed
DEPLOYMENTS, OUR_ROLE = (
    "/apis/apps/v1/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/sully:eviction",
)


async def sully(
    folder: Path, reported: Mapping[str, Any], *arguments: str, writes: list[str] | None = None
) -> tuple[int, str, str]:
    """Run a command against such a server; return its code and output."""
    async with serving(answering(reported, writes)) as url:
        config = folder / "kubeconfig"
        config.write_text(
            f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
        )
        done = await asyncio.to_thread(run, *arguments, "--kubeconfig", str(config))
    return done.returncode, done.stdout, done.stderr


async def test_the_table(tmp_path: Path) -> None:
    assert await sully(tmp_path, WITH_KINDS, "capabilities") == (0, TABLE + GATES, "")


def deployed(*flags: str) -> dict[str, Any]:
    """Return a server with controllers that were installed with these flags."""
    containers = [{"args": ["controllers", *flags]}]
    deployment = {"spec": {"template": {"spec": {"containers": containers}}}}
    listed = {"kind": "DeploymentList", "metadata": {}, "items": [deployment]}
    return {**WITH_KINDS, DEPLOYMENTS: listed}


RUNS = {
    "what was installed": (deployed("--evictor=sully"), (), {"eviction", "history"}, set()),
    "only some": (deployed("--only=expiry,history"), (), {"history"}, {"scheduling", "eviction"}),
    "the role": ({**WITH_KINDS, OUR_ROLE: {"metadata": {}}}, (), {"eviction"}, set()),
    "a flag comes first": (
        deployed("--evictor=sully"),
        ("--evictor", "server"),
        {"history"},
        {"eviction"},
    ),
    "the flag --only": (WITH_KINDS, ("--only", "expiry"), {"expiry"}, {"history", "scheduling"}),
}


@pytest.mark.parametrize(("reported", "flags", "runs", "not_"), RUNS.values(), ids=RUNS)
async def test_what_is_installed_counts(
    tmp_path: Path,
    reported: Mapping[str, Any],
    flags: tuple[str, ...],
    runs: set[str],
    not_: set[str],
) -> None:
    code, out, _ = await sully(tmp_path, reported, "capabilities", "-o", "yaml", *flags)
    names = {
        controller["name"]
        for controller in yaml.safe_load(out)["controllers"]
        if controller["runs"]
    }

    assert code == 0
    assert names >= runs
    assert not names & not_


async def test_an_unknown_controller_is_refused(tmp_path: Path) -> None:
    code, _, err = await sully(tmp_path, WITH_KINDS, "capabilities", "--only", "evict")

    assert code == 2
    assert "--only: unknown controller evict (one of: " in err


def test_the_guide_shows_it() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "kubernetes.md"

    assert TABLE in guide.read_text()


async def test_for_programs(tmp_path: Path) -> None:
    code, out, _ = await sully(tmp_path, WITH_KINDS, "capabilities", "-o", "yaml")

    document = yaml.safe_load(out)
    runs = {controller["name"] for controller in document["controllers"] if controller["runs"]}
    assert (code, document["version"], document["sully"]) == (0, "v1.37.0", False)
    assert runs == {
        "scheduling",
        "expiry",
        "history",
        "patchstatus",
        "deviceconflicts",
        "devicemetrics",
    }


async def test_controllers_show_the_table_and_refuse_a_second_evictor(tmp_path: Path) -> None:
    code, out, err = await sully(tmp_path, WITH_KINDS, "controllers", "--only", "eviction")

    assert code == 2
    assert out.endswith(TABLE)
    assert "eviction must not run here: Kubernetes evicts by default since 1.36" in err


INSTALLED = {
    "the server evicts": (recorded(), "auto", "--evictor=server"),
    "nobody else evicts": (made(34, devices=["v1"]), "auto", "--evictor=sully"),
    "so it was reported": (recorded(), "sully", "--evictor=sully"),
}


@pytest.mark.parametrize(("reported", "flag", "want"), INSTALLED.values(), ids=INSTALLED.keys())
async def test_who_evicts_decides_what_is_installed(
    tmp_path: Path, reported: Mapping[str, Any], flag: str, want: str
) -> None:
    code, out, _ = await sully(tmp_path, reported, "install", "--dry-run", "--evictor", flag)

    assert code == 0
    assert want in out
    assert ("name: sully:eviction" in out) == (want == "--evictor=sully")


async def test_an_evictor_without_a_status_to_write_is_refused(tmp_path: Path) -> None:
    old = made(34, devices=["v1"], rules="v1alpha3")
    code, _, err = await sully(tmp_path, old, *APPLY, "--evictor", "sully")

    assert code == 2
    assert "--evictor sully: taint rules of v1.34.2-gke.5 have no status to report to" in err


async def test_a_server_that_lacks_something_gets_nothing(tmp_path: Path) -> None:
    reported, writes = without_group(recorded(), "apiextensions.k8s.io"), list[str]()
    code, out, err = await sully(tmp_path, reported, *APPLY, writes=writes)

    assert (code, out, writes) == (1, "", [])
    assert "the server does not serve CustomResourceDefinition in apiextensions.k8s.io/v1" in err


def serving_kinds(report: Mapping[str, Any], condition: str, status: str) -> dict[str, Any]:
    """Return a server that answers this for every new kind."""
    reported = {"type": condition, "status": status, "message": "taken by somebody else"}
    root = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    result = {"metadata": {"name": "x"}, "status": {"conditions": [reported]}}
    return {**report, **{f"{root}/{plural}.sully.dev": result for plural in OWN_KINDS}}


async def test_a_kind_that_the_server_will_not_serve(tmp_path: Path) -> None:
    server = serving_kinds(recorded(), "NamesAccepted", "False")
    code, _, err = await sully(tmp_path, server, *APPLY, writes=[])

    assert code == 1
    assert "not served: taken by somebody else" in err


async def test_what_others_need_comes_first(tmp_path: Path) -> None:
    writes: list[str] = []
    server = serving_kinds(recorded(), "Established", "True")
    code, out, _ = await sully(tmp_path, server, *APPLY, writes=writes)

    assert code == 0
    assert {write.split()[0] for write in writes} == {"PATCH"}
    order = [write.rpartition("/")[0].rpartition("/")[2] for write in writes]
    assert list(dict.fromkeys(order)) == [
        "namespaces",
        "customresourcedefinitions",
        "serviceaccounts",
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "services",
        "deployments",
        "poddisruptionbudgets",
        "configmaps",
    ]
    for kind in ("servicemonitor", "prometheusrule"):
        assert (
            f"{kind}.monitoring.coreos.com/sully-controllers skipped"
            " (the server does not serve this kind)"
        ) in out.splitlines()
