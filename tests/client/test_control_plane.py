"""Who acts on a server, and its feature gates: from metrics, else from roles, else unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from client.foreign import serving
from manifests import rule
from servers import ROLE, answering, made, recorded, with_kinds
from sully.client.discovery.adapting import AdaptingTransport
from sully.client.discovery.control_plane import gates_in
from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.domain.capabilities.control_plane import ControlPlane
from sully.machinery.compat import Compat
from sully.machinery.gates import parse_gates
from sully.testing.clock import NOON
from sully.testing.cluster import in_process
from sully.views.kinds import RULES, SLICES
from sully.views.snapshot.loading import ControlPlaneQuery, load

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SCHEDULER, OURS = f"{ROLES}/system:kube-scheduler", f"{ROLES}/sully:eviction"
TAINTS, RULES_GATE = "DRADeviceTaints", "DRADeviceTaintRules"
PAGE = """\
# HELP kubernetes_feature_enabled [BETA] Records the data about a feature gate.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="DRADeviceTaintRules",stage=""} 0
kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 1
kubernetes_feature_enabled{name="Other",stage="ALPHA"} 0.0
kubernetes_feature_enabled{name="Third",stage="ALPHA"} 1.0
process_cpu_seconds_total 0
"""


def test_gates_in_metrics_of_either_server() -> None:
    assert gates_in(PAGE) == {RULES_GATE: False, TAINTS: True, "Other": False, "Third": True}
    assert gates_in("process_cpu_seconds_total 0\n") == {}


def without(reported: Mapping[str, Any], path: str) -> dict[str, Any]:
    return {other: answer for other, answer in reported.items() if other != path}


def role(*resources: str) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "rules": [{"resources": [*resources], "verbs": ["list"]}]}


INFERRED: dict[str, tuple[Mapping[str, Any], dict[str, bool]]] = {
    "a role proves nothing": (recorded(), {}),
    "no rules": ({**recorded(), ROLE: role("pods")}, {RULES_GATE: False}),
    "no taints": (
        {**without(recorded(), ROLE), SCHEDULER: role("pods")},
        {TAINTS: False, RULES_GATE: False},
    ),
    "no roles at all": (without(recorded(), ROLE), {}),
}


@pytest.mark.parametrize(("reported", "want"), INFERRED.values(), ids=INFERRED)
async def test_gates_by_roles(reported: Mapping[str, Any], want: dict[str, bool]) -> None:
    async with (
        serving(answering(reported)) as url,
        AdaptingTransport(Access(server=url)) as transport,
    ):
        plane = await transport.control_plane()

    assert plane.gates == want
    assert plane.gates_from == ("roles" if want else "")


def counting(reported: Mapping[str, Any], asked: list[str]) -> Any:
    """Answer as a server that publishes its gates."""
    usual = answering(reported)

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/metrics":
            return await usual(request)
        asked.append(request.query_string)
        return web.Response(text=PAGE)

    return answer


async def test_gates_are_asked_for_once_and_by_name() -> None:
    asked: list[str] = []
    async with (
        serving(counting(recorded(), asked)) as url,
        AdaptingTransport(Access(server=url)) as transport,
    ):
        without_gates = await transport.control_plane(gates=False)
        assert (without_gates.gates, asked) == ({}, [])
        first, second = await transport.control_plane(), await transport.control_plane()

    assert first is second
    assert (first.gates[RULES_GATE], first.gates_from) == (False, "metrics")
    assert asked == ["name[]=kubernetes_feature_enabled"]


async def test_gates_are_read_only_where_something_depends_on_them() -> None:
    asked: list[str] = []

    class Discovery:
        async def control_plane(self, *, gates: bool = True) -> ControlPlane:
            asked.append("gates" if gates else "")
            return ControlPlane.SULLY

    async with (
        in_process() as up,
        AdaptingTransport(load_kubeconfig([up.kubeconfig], required=True).access()) as transport,
    ):
        query = ControlPlaneQuery(Discovery())
        await load(transport, (RULES, SLICES), now=NOON, acting=query)
        await transport.create(RULES.read_as(dict), rule("r"))
        await load(transport, (RULES, SLICES), now=NOON, acting=query)

    assert asked == ["", "", "gates"]


OLD = made(34, devices=["v1"])
WHO = {
    "Kubernetes": (recorded(), "Kubernetes"),
    "our role": ({**recorded(), OURS: role("pods")}, "Sully"),
    "nobody": (OLD, "Kubernetes"),
    "nobody but us": (with_kinds(OLD, "sully.dev", "v1alpha1", "resourceslicepatches"), "Sully"),
}


@pytest.mark.parametrize(("reported", "evictor"), WHO.values(), ids=WHO)
async def test_who_evicts(reported: Mapping[str, Any], evictor: str) -> None:
    async with (
        serving(answering(reported)) as url,
        AdaptingTransport(Access(server=url)) as transport,
    ):
        plane = await transport.control_plane(gates=False)

    assert (plane.scheduler, plane.evictor) == ("Kubernetes", evictor)


@pytest.mark.parametrize("compat", [Compat.SULLY, Compat.KUBERNETES], ids=["sully", "reference"])
async def test_a_server_of_sully(compat: Compat) -> None:
    gates = parse_gates("DRADeviceTaintRules=false", compat)
    async with (
        in_process(gates=gates, compat=compat) as up,
        AdaptingTransport(load_kubeconfig([up.kubeconfig], required=True).access()) as transport,
    ):
        plane = await transport.control_plane()

    who = "Sully" if compat is Compat.SULLY else "Kubernetes"
    assert (plane.scheduler, plane.evictor, plane.gates_from) == (who, who, "metrics")
    assert plane.gates == gates.all()
