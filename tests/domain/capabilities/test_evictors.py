"""Whether Kubernetes evicts as well as Sully, by who wrote the status of rules."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.capabilities.evictors import OF_KUBERNETES, OF_SULLY, kubernetes_evicts
from sully.domain.capabilities.inaction import Subject, inaction_of
from sully.domain.capabilities.offers import Offer
from sully.domain.capabilities.table import rows
from sully.domain.diagnosis.servers import check_evictors

Obj = dict[str, Any]
CREATED, EARLY, LATE = (f"2030-01-01T12:00:0{second}Z" for second in (0, 1, 2))
MIXED = ControlPlane(scheduler="Kubernetes", evictor="Sully")
BOTH = replace(MIXED, second_evictor="it was seen")


def written(manager: str, time: str = EARLY, subresource: str = "status") -> Obj:
    entry = {"manager": manager, "subresource": subresource, "operation": "Apply"}
    return {**entry, "time": time} if time else entry


def owned(name: str, *entries: Obj) -> Obj:
    return {
        "metadata": {"name": name, "creationTimestamp": CREATED, "managedFields": list(entries)}
    }


def seen(name: str, time: str) -> str:
    return f'it wrote the status of devicetaintrule "{name}" at {time}'


CASES: dict[str, tuple[list[Obj], str]] = {
    "no rules": ([], ""),
    "a rule without owners": ([{"metadata": {"name": "a"}}], ""),
    "only Sully": ([owned("a", written(OF_SULLY))], ""),
    "only Kubernetes: Sully has not started since": ([owned("a", written(OF_KUBERNETES))], ""),
    "both": (
        [owned("a", written(OF_KUBERNETES), written(OF_SULLY, LATE))],
        seen("a", EARLY),
    ),
    "both, one without a change": (
        [owned("a", written(OF_KUBERNETES), written(OF_SULLY, ""))],
        seen("a", EARLY),
    ),
    "Kubernetes without a change": (
        [owned("a", written(OF_KUBERNETES, ""), written(OF_SULLY))],
        seen("a", CREATED),
    ),
    "not the status": (
        [owned("a", written(OF_KUBERNETES, subresource=""), written(OF_SULLY))],
        "",
    ),
    "the newest of several": (
        [
            owned("a", written(OF_KUBERNETES, LATE), written(OF_SULLY)),
            owned("b", written(OF_KUBERNETES, EARLY), written(OF_SULLY)),
        ],
        seen("a", LATE),
    ),
}


@pytest.mark.parametrize(("rules", "want"), CASES.values(), ids=CASES)
def test_evidence(rules: list[Obj], want: str) -> None:
    assert kubernetes_evicts(rules) == want


def test_what_no_longer_holds() -> None:
    assert MIXED.honors_rates
    assert MIXED.honors_pauses
    assert not BOTH.honors_rates
    assert not BOTH.honors_pauses
    assert ControlPlane.from_document(BOTH.to_document()) == BOTH


def test_what_is_printed_of_it() -> None:
    inaction = inaction_of(BOTH, Subject.RATES)

    assert inaction is not None
    assert inaction.text == (
        "eviction rates, pauses and budgets of taints have no effect: Kubernetes evicts as well as"
        " Sully: it was seen"
    )
    assert inaction.remedy == (
        "to disable its evictor, start kube-controller-manager with"
        " --controllers=*,-device-taint-eviction-controller, then restart the controllers of Sully"
    )
    assert inaction_of(MIXED, Subject.RATES) is None


FINDINGS = {
    "both": (BOTH, ["failure"]),
    "Sully": (MIXED, ["ok"]),
    "neither": (ControlPlane.KUBERNETES, []),
}


@pytest.mark.parametrize(("plane", "want"), FINDINGS.values(), ids=FINDINGS)
def test_findings(plane: ControlPlane, want: list[str]) -> None:
    assert [finding.state for finding in check_evictors(plane)] == want


def test_capabilities() -> None:
    server = Offer(version="v1.37.0", minor=37, own=False, devices="v1", rules="v1")
    (row,) = (row for row in rows(server, "sully", plane=BOTH) if row.subject == "eviction")

    assert row.server == "its own, as well as Sully's: it was seen"
