"""Changes that evict no pod, after which pods that are created later are unschedulable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

import manifests
from manifests import stored
from planning.building import (
    CLASS,
    DRIVER,
    QUICK,
    Obj,
    class_,
    machines,
    meta,
    node,
    put,
    rule,
    running,
    slice_,
    snapshot,
    template,
    toleration,
)
from sully.cli.change.plan.printer import show_plan, summary
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.pools import PoolId
from sully.domain.planning.report import Plan, document
from sully.machinery.formats.timestamps import format_time
from sully.planning.dryrun.changes import Remove
from sully.planning.latent import MAX_OWNERS, latent_effects
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.simulator import Simulation
from sully.testing.clock import NOON
from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES

WEB, DB = "ReplicaSet/web", "ReplicaSet/db"
MODEL = f'device.attributes["{DRIVER}"].model'
NO_DEVICES = "0/1 nodes are available: 1 cannot allocate all claims."


def plan(objects: Iterable[Obj], *changes: Any) -> Plan:
    simulation = Simulation(snapshot(*objects), QUICK)
    simulation.run(changes)
    return build_plan(simulation)


def patch(**attributes: str) -> Obj:
    """Return a patch of all devices."""
    values = {f"{DRIVER}/{name}": {"string": value} for name, value in attributes.items()}
    devices = {"filter": {"driver": DRIVER}, "attributes": values}
    return stored(manifests.patch("patch", devices))


def with_model(model: str, devices: int = 1) -> list[Obj]:
    """Return a node whose devices are all of one model, and nothing else."""
    made = slice_("n1", devices)
    for device in made["spec"]["devices"]:
        device["attributes"] = {"model": {"string": model}}
    return [node("n1"), made]


def template_for(model: str, name: str = "t") -> Obj:
    """Return a template that requests a model."""
    made = template(name)
    exactly = made["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": f'{MODEL} == "{model}"'}}]
    return made


ONE = running("p1", "n1", "gpu-0", owned_by=WEB)
POOLS = (PoolId(DRIVER, "n1"), PoolId(DRIVER, "n2"))
CORDON = put(rule(effect="NoSchedule", pool="n1"))


@dataclass(frozen=True)
class Case:
    objects: list[Obj]
    changes: tuple[Any, ...] = (CORDON,)
    owners: tuple[str, ...] = ()
    """Owner, how many pods, and which next pod is unschedulable."""
    requests: tuple[str, ...] = ()
    evicted: int = field(default=0)


OWNERS = {
    "the only device is cordoned": Case([*machines("n1"), *ONE], owners=("web 1 Replacement",)),
    "another device is free": Case([*machines("n1", "n2"), *ONE]),
    "another device is in use": Case(
        [*machines("n1", "n2"), *ONE, *running("p2", "n2", "gpu-0", owned_by=DB)],
        owners=("web 1 Replacement",),
    ),
    "the taint is tolerated": Case(
        [
            *machines("n1"),
            *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[{"operator": "Exists"}]),
        ]
    ),
    "only NoExecute is tolerated": Case(
        [*machines("n1"), *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration()])],
        owners=("web 1 Replacement",),
    ),
    "the free devices are cordoned": Case(
        [*machines("n1", "n2"), *running("p2", "n2", "gpu-0", owned_by=DB)],
        owners=("db 1 Additional",),
    ),
    "there was none free before": Case(
        [*machines("n1"), *machines("n2")[1:], *ONE, *running("p2", "n2", "gpu-0", owned_by=DB)],
        (put(rule(effect="NoSchedule", pool="n2")),),
        owners=("db 1 Replacement",),
    ),
    "it was unschedulable before": Case(
        [*machines("n1"), *ONE, rule("before", "NoSchedule", pool="n1", key="example.com/other")]
    ),
    "its node was cordoned before": Case(
        [*machines("n1")[:1], node("n1", unschedulable=True), slice_("n1"), *ONE]
    ),
    "no controller": Case([*machines("n1"), *running("p1", "n1", "gpu-0")]),
    "a static pod": Case([*machines("n1"), *running("p1", "n1", "gpu-0", owned_by="Node/n1")]),
    "two pods of one owner": Case(
        [*machines("n1", devices=2), *ONE, *running("p2", "n1", "gpu-1", owned_by=WEB)],
        owners=("web 2 Replacement",),
    ),
    "the taint is removed": Case(
        [*machines("n1"), *ONE, rule(effect="NoSchedule", pool="n1")],
        (Remove(RULES, Key("", "rule")),),
    ),
    "no effect": Case([*machines("n1"), *ONE], (put(rule(effect="None", pool="n1")),)),
    "it expires": Case(
        [*machines("n1"), *ONE],
        (
            put(
                rule(
                    effect="NoSchedule",
                    annotations={"sully.dev/expires-at": format_time(NOON + timedelta(hours=2))},
                )
            ),
        ),
        owners=("web 1 Replacement",),
    ),
    "evicted pods are reported already": Case(
        [*machines("n1"), *ONE], (put(rule(pool="n1")),), evicted=1
    ),
    "evicted pods that are rescheduled need the last device": Case(
        [*machines("n1", "n2"), *ONE], (put(rule(pool="n1")),), evicted=1
    ),
    "the class no longer has its device": Case(
        [*machines("n1", devices=2), *ONE],
        (put(class_(CLASS, "false"), CLASSES),),
        owners=("web 1 Replacement",),
        requests=("ResourceClaimTemplate a/p1-template r",),
    ),
    "a patch changes what is requested": Case(
        [
            class_(),
            *with_model("a"),
            *(
                template_for("a", x["metadata"]["name"])
                if x["kind"] == "ResourceClaimTemplate"
                else x
                for x in ONE
            ),
        ],
        (put(patch(model="b"), PATCHES),),
        owners=("web 1 Replacement",),
        requests=("ResourceClaimTemplate a/p1-template r",),
    ),
}


@pytest.mark.parametrize("case", OWNERS.values(), ids=OWNERS)
def test_owners(case: Case) -> None:
    result = plan(case.objects, *case.changes)

    latent = result.latent_effects
    owners = [f"{x.owner.partition('/')[2]} {x.pods} {x.next_pod}" for x in latent.owners]
    requests = [f"{x.kind} {x.namespace}/{x.name} {x.request}" for x in latent.requests]
    assert (owners, requests) == (list(case.owners), list(case.requests))
    assert len(result.caused) == case.evicted


REQUESTS = {
    "an attribute changes": ([put(patch(model="b"), PATCHES)], ["t"]),
    "another attribute changes": ([put(patch(grade="b"), PATCHES)], []),
    "the devices are gone": ([Remove(SLICES, Key("", "s-n1"))], ["t"]),
    "the class excludes them": ([put(class_(CLASS, "false"), CLASSES)], ["t"]),
    "the class is gone": ([Remove(CLASSES, Key("", CLASS))], ["t"]),
    "only taints change": ([CORDON], []),
}


@pytest.mark.parametrize(("changes", "want"), REQUESTS.values(), ids=REQUESTS)
def test_templates_whose_selectors_match_no_device(changes: list[Any], want: list[str]) -> None:
    # Nothing matched the second one before.
    result = plan(
        [class_(), *with_model("a"), template_for("a"), template_for("z", "never")], *changes
    )

    assert [x.name for x in result.latent_effects.requests] == want
    assert result.latent_effects.total_requests == len(want)


def test_alternatives_match_while_one_of_them_does() -> None:
    def alternative(name: str, model: str) -> Obj:
        cel = {"cel": {"expression": f'{MODEL} == "{model}"'}}
        return {"name": name, "deviceClassName": CLASS, "selectors": [cel]}

    made = template("t")
    choices = [alternative("first", "a"), alternative("second", "b")]
    request = {"name": "r", "firstAvailable": choices}
    made["spec"]["spec"]["devices"]["requests"] = [request]
    objects = [class_(), *with_model("a"), made]

    assert plan(objects, put(patch(model="b"), PATCHES)).latent_effects.requests == ()
    [result] = plan(objects, put(patch(model="c"), PATCHES)).latent_effects.requests
    assert result.device_classes == (CLASS, CLASS)


def test_claims_that_wait_for_a_pod_are_checked_as_templates_are() -> None:
    spec = template_for("a")["spec"]["spec"]
    claim = {"kind": "ResourceClaim", "metadata": meta("waiting", "a"), "spec": spec}
    result = plan([class_(), *with_model("a"), claim], put(patch(model="b"), PATCHES))

    assert [(x.kind, x.name) for x in result.latent_effects.requests] == [
        ("ResourceClaim", "waiting")
    ]


def test_so_many_owners_are_tried() -> None:
    count = MAX_OWNERS + 3
    objects = machines("n1", devices=count)
    for number in range(count):
        objects += running(
            f"p{number}", "n1", f"gpu-{number}", owned_by=f"ReplicaSet/web-{number}", cpu="1m"
        )
    latent = plan(objects, CORDON).latent_effects

    assert (len(latent.owners), latent.owners_not_evaluated) == (MAX_OWNERS, 3)
    assert {owner.message for owner in latent.owners} == {NO_DEVICES}


def test_pods_that_are_tried_keep_their_nodes_and_devices() -> None:
    objects = [*machines("n1", "n2"), *ONE, *running("p2", "n2", "gpu-0", owned_by=DB)]
    simulation = Simulation(snapshot(*objects), QUICK)
    simulation.run([CORDON])

    def state() -> list[Any]:
        cluster = simulation.cluster
        pods = sorted((str(key_of(x)), x.spec.node_name) for x in cluster.pods.values())
        claims = sorted((str(key_of(x)), repr(x.status)) for x in cluster.claims.values())
        ledger = simulation.scheduler.core.devices.ledger
        uses = (ledger.get(pool) for pool in POOLS)
        return [pods, claims, [repr(use.holders) for use in uses if use is not None]]

    before = state()
    result = latent_effects(simulation, ())

    assert [owner.owner for owner in result.owners] == [WEB]
    assert state() == before


def test_how_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    objects = [class_(), *with_model("a", 2), template_for("a"), *ONE]
    result = plan(objects, CORDON, put(patch(model="b"), PATCHES))

    show_plan(result)

    printed = capsys.readouterr().out
    assert summary(result) == (
        "2 devices affected, used by 1 claim. No pods would be evicted."
        " New pods of 1 owner would be unschedulable. 1 request would match no device."
    )
    assert "Latent effects, when pods are created later:" in printed
    assert f"a          ReplicaSet/web     1  if a pod is recreated  {NO_DEVICES}" in printed
    assert "ResourceClaimTemplate a/t: request r (class gpu) would match no device" in printed
    assert document(result)["latentEffects"]["owners"][0]["nextPod"] == "Replacement"
