"""Who evicts, which controllers run, and what is asked for in vain."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from sully.controller_setup import CONTROLLERS
from sully.domain.capabilities.duties import (
    BESIDE_KUBERNETES,
    OF_KUBERNETES,
    DutyError,
    Evictor,
    chosen,
    duties,
    evictor,
    two_evictors_warning,
)
from sully.domain.capabilities.offers import Offer, minor_of
from sully.domain.capabilities.table import rows

KUBERNETES = Offer(
    version="v1.37.0",
    minor=37,
    own=False,
    devices="v1",
    device_fields=frozenset(("name", "taints")),
    rules="v1",
    rule_status=True,
    selector_fields=frozenset(("driver", "pool", "device")),
    taint_fields=frozenset(("key", "value", "effect", "timeAdded")),
)
HUB = replace(KUBERNETES, hub=frozenset(("managedclusters", "placements")))


def test_every_controller_is_on_one_side() -> None:
    assert OF_KUBERNETES | set(BESIDE_KUBERNETES) == CONTROLLERS.keys()
    assert OF_KUBERNETES.isdisjoint(BESIDE_KUBERNETES)


@dataclass(frozen=True)
class Case:
    flag: Evictor
    sully: bool
    offer: Offer = KUBERNETES
    problem: str = ""
    doubt: str = ""


CASES = {
    "where in doubt, the server": Case("auto", False),
    "the flag selects Sully": Case("sully", True, doubt="Kubernetes evicts by default since 1.36"),
    "the flag selects Sully, and nothing else can evict": Case(
        "sully", True, replace(KUBERNETES, minor=32, rules="")
    ),
    "the flag selects the server": Case("server", False, replace(KUBERNETES, minor=32, rules="")),
    "no status to report to": Case(
        "sully",
        False,
        replace(KUBERNETES, rule_status=False),
        "taint rules of v1.37.0 have no status to report to",
    ),
    "before there were taints": Case("auto", True, replace(KUBERNETES, minor=32, rules="")),
    "our own server": Case("server", True, replace(KUBERNETES, own=True)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_evicts(case: Case) -> None:
    result = evictor(case.offer, case.flag)

    assert (result.sully, result.problem) == (case.sully, case.problem)
    assert result.doubt == case.doubt
    assert two_evictors_warning(result).startswith(case.doubt)
    assert bool(two_evictors_warning(result)) == bool(case.doubt)


def test_what_only_the_flag_says_is_no_fact() -> None:
    (row,) = (row for row in rows(KUBERNETES, "sully") if row.subject == "eviction")

    assert row.server == "disabled, as --evictor assumes"


@dataclass(frozen=True)
class Asked:
    names: set[str]
    error: str = ""
    offer: Offer = KUBERNETES
    flag: Evictor = "auto"


ASKED = {
    "what runs anyway": Asked({"scheduling"}),
    "a second evictor": Asked(
        {"eviction"}, "eviction must not run here: Kubernetes evicts by default since 1.36"
    ),
    "the only evictor": Asked({"eviction"}, flag="sully"),
    "what Kubernetes does": Asked(
        {"deployments"},
        "deployments must not run here: the server's kube-controller-manager does it",
    ),
    "placements on a hub": Asked({"placement", "clusters"}, offer=HUB),
    "placements elsewhere": Asked(
        {"placement"}, "placement must not run here: the server has no Open Cluster Management"
    ),
    "history without its kinds": Asked(
        {"history"},
        "history must not run here:"
        " the server has no evictionrecords and no taintrecords: sully install",
    ),
}


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED.keys())
def test_asking_by_name(case: Asked) -> None:
    config = duties(case.offer, CONTROLLERS, case.flag)
    try:
        got, error = chosen(config, frozenset(case.names)), ""
    except DutyError as raised:
        got, error = frozenset(case.names), str(raised)

    assert (got, error) == (frozenset(case.names), case.error)


def test_what_a_hub_could_do_is_not_done_unasked() -> None:
    assert chosen(duties(HUB, CONTROLLERS), None) == {
        "deviceconflicts",
        "devicemetrics",
        "scheduling",
        "expiry",
    }


@pytest.mark.parametrize(
    ("text", "minor"),
    [("v1.37.0", 37), ("v1.33.5-gke.100", 33), ("v1.31.2+k3s1", 31), ("", 0), ("v2.0.0", 0)],
)
def test_minor_versions(text: str, minor: int) -> None:
    assert minor_of(text) == minor


def test_the_table() -> None:
    table = {row.subject: (row.server, row.sully) for row in rows(KUBERNETES)}

    assert table == {
        "version": ("v1.37.0", "runs what its controllers do not"),
        "devices": ("resource.k8s.io/v1", "schedules: only for pods with schedulerName: sully"),
        "device taints": ("yes", "honors them"),
        "taint rules": (
            "v1 by driver, pool, device",
            "deletes expired rules: no other controller does",
        ),
        "eviction": ("its own", "no: Kubernetes evicts by default since 1.36"),
        "own kinds": ("none", "'sully install' installs them"),
        "clusters": ("none", "no: the server has no Open Cluster Management"),
    }
