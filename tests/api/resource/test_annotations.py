"""Annotations of ours on rules and patches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from api.resource.bodies import patch_body, rule_body
from api.resource.writing import REFERENCE, Writer, gates
from sully.api.resource.annotations import (
    CREATED_BY,
    DESCRIPTION,
    EXPIRES_AT,
    PAUSED,
    expiry,
    pause_reason,
)
from sully.api.resource.eviction_rate import BURST_ANNOTATION, RATE_ANNOTATION
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

Body = Callable[[], dict[str, Any]]
KINDS: dict[str, Body] = {"rule": rule_body, "patch": patch_body}
NO_TIME = "must be a time as in RFC 3339, for example 2026-01-02T15:04:05Z"


@dataclass(frozen=True)
class Case:
    value: dict[str, str]
    want: list[str] = field(default_factory=list)
    gates: Gates = field(default_factory=Gates)
    strict: bool = False


def _bad_time(text: str) -> list[str]:
    return [f'metadata.annotations[sully.dev/expires-at]: Invalid value: "{text}": {NO_TIME}']


CASES = {
    "nothing": Case({}),
    "a time": Case({EXPIRES_AT: "2026-04-01T00:00:00Z"}),
    "a time elsewhere, with a fraction": Case({EXPIRES_AT: "2026-04-01T02:00:00.5+02:00"}),
    "a time that has passed": Case({EXPIRES_AT: "2020-01-01T00:00:00Z"}),
    "a duration": Case({EXPIRES_AT: "2h"}, _bad_time("2h")),
    "no time at all": Case({EXPIRES_AT: ""}, _bad_time("")),
    "a day": Case({EXPIRES_AT: "2026-04-01"}, _bad_time("2026-04-01")),
    "a bad time, without guards": Case({EXPIRES_AT: "2h"}, gates=gates(SullyEvictionGuards=False)),
    "a bad time, as Kubernetes": Case({EXPIRES_AT: "2h"}, gates=REFERENCE, strict=True),
    "a pause": Case({PAUSED: "because of the night"}),
    "a description": Case({DESCRIPTION: "d" * 1024}),
    "a novel": Case(
        {DESCRIPTION: "d" * 1025},
        ["metadata.annotations[sully.dev/description]: Too long: may not be more than 1024 bytes"],
    ),
    "a rate": Case({RATE_ANNOTATION: "1/5m", BURST_ANNOTATION: "1"}),
    "no rate": Case(
        {RATE_ANNOTATION: "fast"},
        [
            'metadata.annotations[sully.dev/eviction-rate]: Invalid value: "fast": must be a rate,'
            " for example 2/s or 1/5m"
        ],
    ),
    "no burst": Case(
        {BURST_ANNOTATION: "0"},
        ['metadata.annotations[sully.dev/eviction-burst]: Invalid value: "0": must be 1 to 1000'],
    ),
    "a novel, as Kubernetes": Case({DESCRIPTION: "d" * 1025}, gates=REFERENCE, strict=True),
}


def _with(body: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    return body | {"metadata": body["metadata"] | {"annotations": annotations}}


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_checked(case: Case, body: Body) -> None:
    writer = Writer(
        version="v1alpha3",
        gates=case.gates,
        compat=Compat.KUBERNETES if case.strict else Compat.SULLY,
    )

    assert writer.create(_with(body(), case.value)).texts == case.want
    old = writer.create(body()).obj
    assert writer.update(_with(body(), case.value), old).texts == case.want


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS.keys())
def test_what_was_stored_without_the_gate_may_stay(body: Body) -> None:
    off = Writer(version="v1alpha3", gates=gates(SullyEvictionGuards=False))
    old = off.create(_with(body(), {EXPIRES_AT: "2h"})).obj
    on = Writer(version="v1alpha3")

    assert on.update(_with(body(), {EXPIRES_AT: "2h", DESCRIPTION: "x"}), old).texts == []
    assert on.update(_with(body(), {EXPIRES_AT: "3h"}), old).texts == _bad_time("3h")


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS.keys())
def test_the_author_is_set_by_the_server(body: Body) -> None:
    alice, mallory = Writer(version="v1alpha3"), Writer(version="v1alpha3", user="mallory")
    made = alice.create(_with(body(), {CREATED_BY: "the pope"})).obj

    forged = mallory.update(_with(body(), {CREATED_BY: "mallory"}), made).obj
    removed = mallory.update(_with(body(), {}), made).obj

    for obj in (made, forged, removed):
        assert obj["metadata"]["annotations"][CREATED_BY] == "alice"


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS.keys())
def test_kubernetes_stamps_nothing(body: Body) -> None:
    writer = Writer(version="v1alpha3", gates=REFERENCE, compat=Compat.KUBERNETES)

    got = writer.create(_with(body(), {CREATED_BY: "me"})).obj

    assert got["metadata"]["annotations"] == {CREATED_BY: "me"}


ENDS = {
    "absent": ({}, None),
    "unreadable": ({EXPIRES_AT: "tomorrow"}, None),
    "elsewhere": (
        {EXPIRES_AT: "2026-04-01T02:00:00+02:00"},
        datetime(2026, 4, 1, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize(("annotations", "want"), ENDS.values(), ids=ENDS.keys())
def test_expiry(annotations: dict[str, str], want: datetime | None) -> None:
    assert expiry(annotations) == want


PAUSES = {
    "absent": ({}, None),
    "empty": ({PAUSED: ""}, None),
    "false": ({PAUSED: "False"}, None),
    "true": ({PAUSED: "true"}, "true"),
    "a reason": ({PAUSED: " on call until six "}, "on call until six"),
}


@pytest.mark.parametrize(("annotations", "want"), PAUSES.values(), ids=PAUSES.keys())
def test_pause(annotations: dict[str, str], want: str | None) -> None:
    assert pause_reason(annotations) == want
