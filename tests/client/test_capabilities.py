"""Servers of several versions: what Sully runs and refuses there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import manifests
from client.foreign import Foreign, connected
from servers import (
    OLD_SELECTOR,
    answering,
    made,
    recorded,
    with_kinds,
    without_schemas,
)
from sully.client.discovery.capabilities import RelocatedTransport, probe, relocated
from sully.client.discovery.resources import APIResource, discover
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.controller_setup import CONTROLLERS
from sully.domain.capabilities.duties import chosen, duties, evictor, moves
from sully.domain.capabilities.fitting import refused_fields
from sully.domain.capabilities.offers import offer
from sully.machinery.compat import Compat
from sully.testing.cluster import in_process
from sully.views.kinds import CONSUMER_PODS, PATCHES, RULES

OURS = (
    "resourceslicepatches",
    "evictionrecords",
    "taintrecords",
    "devicetaintpolicies",
    "devicemaintenances",
)
HUB = "cluster.open-cluster-management.io"
RULE = manifests.rule(
    "r",
    "NoExecute",
    key="k",
    selector={
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": "true"}}],
    },
    taint={"evictionsPerSecond": 3, "description": "x"},
    annotations={"sully.dev/paused": "lunch"},
)
CLASS, CEL, RATE, WORDS, PAUSE = (
    "spec.deviceSelector.deviceClassName",
    "spec.deviceSelector.selectors",
    "spec.taint.evictionsPerSecond",
    "spec.taint.description",
    "metadata.annotations[sully.dev/paused]",
)


@dataclass(frozen=True)
class Case:
    server: Mapping[str, Any]
    runs: set[str]
    refuses: set[str]
    rules: str = ""
    evicts: bool = False


EVERYTHING = {CLASS, CEL, RATE, WORDS, PAUSE}
CASES = {
    "1.33 as it comes": Case(made(33), set(), {"kind"}, evicts=True),
    "1.31 with alpha devices": Case(made(31, devices=["v1alpha3"]), set(), {"kind"}, evicts=True),
    "1.32 with beta devices": Case(
        made(32, devices=["v1beta1"], taints=False),
        {"scheduling", "deviceconflicts", "devicemetrics", "eviction"},
        {"kind"},
        evicts=True,
    ),
    "1.33 with beta devices and rules": Case(
        made(33, devices=["v1beta1"], rules="v1alpha3", selector=OLD_SELECTOR),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        {RATE, WORDS, PAUSE},
        rules="v1alpha3",
    ),
    "1.33 with the second beta and rules": Case(
        made(33, devices=["v1beta2", "v1beta1"], rules="v1alpha3", selector=OLD_SELECTOR),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        {RATE, WORDS, PAUSE},
        rules="v1alpha3",
    ),
    "1.34 as it comes": Case(
        made(34, devices=["v1"]),
        {"scheduling", "deviceconflicts", "devicemetrics", "eviction"},
        {"kind"},
        evicts=True,
    ),
    "1.34 with taints switched on": Case(
        made(34, devices=["v1"], role=True),
        {"scheduling", "deviceconflicts", "devicemetrics"},
        {"kind"},
    ),
    "1.34 with rules": Case(
        made(34, devices=["v1"], rules="v1alpha3", selector=OLD_SELECTOR, role=True),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        {RATE, WORDS, PAUSE},
        rules="v1alpha3",
    ),
    "1.35 with rules": Case(
        made(35, devices=["v1"], rules="v1alpha3", status=True, role=True),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        EVERYTHING,
        rules="v1alpha3",
    ),
    "1.36 as it comes": Case(
        made(36, devices=["v1"], role=True),
        {"scheduling", "deviceconflicts", "devicemetrics"},
        {"kind"},
    ),
    "1.36 whose roles we may not see": Case(
        made(36, devices=["v1"]), {"scheduling", "deviceconflicts", "devicemetrics"}, {"kind"}
    ),
    "1.36 with rules": Case(
        made(36, devices=["v1", "v1beta2"], rules="v1beta2", status=True, role=True),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        EVERYTHING,
        rules="v1beta2",
    ),
    "1.37": Case(
        recorded(),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        EVERYTHING,
        rules="v1",
    ),
    "1.37 without schemas": Case(
        without_schemas(recorded()),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        EVERYTHING,
        rules="v1",
    ),
    "1.37 with our kinds": Case(
        with_kinds(recorded(), "sully.dev", "v1alpha1", *OURS),
        {
            "scheduling",
            "deviceconflicts",
            "devicemetrics",
            "devicetaintpolicies",
            "devicemaintenances",
            "expiry",
            "history",
            "patchstatus",
        },
        EVERYTHING,
        rules="v1",
    ),
    "1.37 that is a hub": Case(
        with_kinds(recorded(), HUB, "v1", "managedclusters", "placements"),
        {"scheduling", "deviceconflicts", "devicemetrics", "expiry"},
        EVERYTHING,
        rules="v1",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_what_runs_and_what_is_refused(case: Case) -> None:
    async with connected(answering(case.server)) as http:
        result = offer(await probe(http))

    evicts = evictor(result).sully
    assert chosen(duties(result, CONTROLLERS), None) == case.runs
    assert (result.rules, evicts, result.own) == (case.rules, case.evicts, False)
    refused = refused_fields(result, RULE, sully_evicts=evicts)
    assert {item.field for item in refused} == case.refuses


@pytest.mark.parametrize("strict", [False, True], ids=["ours", "reference"])
async def test_our_own_server_gets_everything(strict: bool) -> None:
    async with in_process(compat=Compat.KUBERNETES if strict else Compat.SULLY) as plane:
        access = load_kubeconfig([plane.kubeconfig], required=True).access()
        async with HttpTransport(access) as http:
            result = offer(await probe(http))

    assert chosen(duties(result, CONTROLLERS), None) == CONTROLLERS.keys()
    assert (result.own, result.devices, result.rules, result.rule_status) == (
        True,
        "v1",
        "v1",
        True,
    )
    assert moves(result) == {}
    assert refused_fields(result, RULE, sully_evicts=evictor(result).sully) == ()


OLD = made(36, devices=["v1"], rules="v1beta2", status=True)


async def test_kinds_are_spoken_to_where_they_are() -> None:
    async with connected(answering(with_kinds(OLD, "sully.dev", "v1alpha1", *OURS))) as http:
        served = await discover(http)
        moved = moves(offer(await probe(http, served)))
    seen = Foreign([{"metadata": {"name": "a"}}])
    async with connected(seen) as http:
        transport = RelocatedTransport(http, moved)
        await transport.get(PATCHES.read_as(dict), Key("", "a"))
        await transport.create(PATCHES.read_as(dict), {"metadata": {"name": "a"}})
        body = {"metadata": {"name": "a"}}
        await transport.apply(RULES.read_as(dict), body, WriteOptions(field_manager="m"), "status")
        await transport.delete(RULES, Key("", "a"))
        await transport.get(CONSUMER_PODS.read_as(dict), Key("n", "a"))

    patches = "/apis/sully.dev/v1alpha1/resourceslicepatches"
    rules = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
    assert [request.line.partition("?")[0] for request in seen.requests] == [
        f"GET {patches}/a",
        f"POST {patches}",
        f"PATCH {rules}/a/status",
        f"DELETE {rules}/a",
        "GET /api/v1/namespaces/n/pods/a",
    ]
    assert seen.requests[1].body["apiVersion"] == "sully.dev/v1alpha1"
    assert seen.requests[2].body["apiVersion"] == "resource.k8s.io/v1beta2"


def test_what_is_elsewhere_is_shown_where_it_is_asked_for() -> None:
    there = APIResource("sully.dev", ("v1alpha1",), "resourceslicepatches", "P", False, frozenset())
    other = APIResource("", ("v1",), "pods", "Pod", True, frozenset())
    at = {("resource.k8s.io", "resourceslicepatches"): ("sully.dev", "v1alpha1")}

    shown = relocated((there, other), at)

    assert [(item.group, item.plural) for item in shown] == [
        ("sully.dev", "resourceslicepatches"),
        ("", "pods"),
        ("resource.k8s.io", "resourceslicepatches"),
    ]
    assert PATCHES.version in shown[-1].versions
