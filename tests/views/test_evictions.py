"""How far a rule has come: which pods are pending, and when the last one is evicted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from sully.api.resource.eviction_rate import EvictionRate
from sully.api.resource.types import DeviceTaintRule, DeviceToleration, ResourceClaim
from sully.api.sully.types import (
    EvictedPod,
    EvictionCause,
    EvictionRecord,
    EvictionRecordSpec,
    TaintRecord,
    TaintRecordRule,
    TaintRecordSpec,
    TaintRecordStatus,
)
from sully.client.transport import Key, Kind
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import DeviceId
from sully.machinery.meta import Condition, ObjectMeta
from sully.testing.builders import (
    DRIVER,
    claim,
    device,
    exists,
    patch,
    pod,
    rule,
    select,
    slice_,
    taint,
)
from sully.testing.clock import NOON
from sully.views.evictions import (
    EvictionProgress,
    count_evicted,
    due_without_rules,
    eviction_times,
    in_namespace,
    progress_of,
)
from sully.views.kinds import CLAIMS, CONSUMER_PODS, PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.snapshot import Objects, Snapshot

LATER = NOON + timedelta(seconds=100)


def after(seconds: float) -> datetime:
    return LATER + timedelta(seconds=seconds)


def progress(
    one: DeviceTaintRule,
    *,
    tolerated: int | None = None,
    recorded: int = 0,
    terminating: str = "",
    has_records: bool = True,
    plane: ControlPlane = ControlPlane.SULLY,
) -> EvictionProgress:
    """Return how a rule stands whose devices two pods hold, in two namespaces.

    Those named in `terminating` are on their way out, for another half a minute.
    """
    tolerations = (exists(seconds=tolerated),) if tolerated is not None else ()
    snapshot = Snapshot(
        [
            Objects(SLICES, [slice_("s", device("a"), device("b"), device("c"))]),
            Objects(RULES, [one]),
            Objects(CLAIMS, [_claim(name, tolerations) for name in ("a", "b")]),
            Objects(
                CONSUMER_PODS, [_pod(name, terminating=name in terminating) for name in ("a", "b")]
            ),
            Objects(TAINT_RECORDS, [record(one, recorded)] if recorded else []),
        ],
        taken=LATER,
        control_plane=plane,
    )
    records = snapshot.of(TAINT_RECORDS)
    (only,) = progress_of([one], snapshot.exposures, records, LATER, has_records=has_records)
    return only


def _pod(name: str, *, terminating: bool) -> Pod:
    made = pod(name, name, namespace=f"ns-{name}")
    metadata = msgspec.structs.replace(made.metadata, deletion_timestamp=after(30))
    return msgspec.structs.replace(made, metadata=metadata) if terminating else made


def _claim(name: str, tolerations: tuple[DeviceToleration, ...]) -> ResourceClaim:
    held = (DeviceId(DRIVER, "pool-1", name), tolerations)
    return claim(name, held, pods=(name,), namespace=f"ns-{name}")


def record(one: DeviceTaintRule, evicted: int) -> TaintRecord:
    return TaintRecord(
        metadata=ObjectMeta(name=one.metadata.name),
        spec=TaintRecordSpec(
            rule=TaintRecordRule(name=one.metadata.name, uid=one.metadata.uid),
            taint=one.spec.taint,
            added_time=NOON,
        ),
        status=TaintRecordStatus(evicted=evicted),
    )


def with_message(
    one: DeviceTaintRule, message: str, by: str = "sully.dev/Evicted"
) -> DeviceTaintRule:
    condition = Condition(type=by, status="True", reason="PodsEvicted", message=message)
    status = msgspec.structs.replace(one.status, conditions=(condition,))
    return msgspec.structs.replace(one, status=status)


ALL = rule("r", select())
PAUSED = rule("r", select(), annotations={"sully.dev/paused": "wait"})
OTHERS = with_message(ALL, "9 pods evicted since starting the controller.", by="EvictionInProgress")


@dataclass(frozen=True)
class Case:
    rule: DeviceTaintRule
    state: str
    pending: int = 2
    evicted: int = 0
    tolerated: int | None = None
    recorded: int = 0
    finish: datetime | None = LATER
    terminating: str = ""
    has_records: bool = True
    complete: bool = True


CASES = {
    "all together": Case(ALL, "evicting"),
    "later": Case(ALL, "waiting", tolerated=300, finish=after(200)),
    "never": Case(rule("r", select(device="c")), "done", 0, finish=None),
    "paused": Case(PAUSED, "paused", finish=None),
    "counted by its record": Case(ALL, "evicting", evicted=7, recorded=7),
    "counted by its record, not in its status": Case(
        with_message(ALL, "8 pods evicted."), "evicting", evicted=9, recorded=9
    ),
    "one is on its way out": Case(ALL, "evicting", 1, evicted=1, terminating="a"),
    "all are on their way out": Case(ALL, "terminating", 0, 2, terminating="ab", finish=after(30)),
    "on their way out by the count of our own": Case(
        with_message(ALL, "1 pod evicted."),
        "terminating",
        0,
        1,
        recorded=1,
        terminating="ab",
        finish=after(30),
    ),
    "on their way out, but not for this": Case(
        ALL, "waiting", 1, tolerated=300, terminating="a", finish=after(200)
    ),
    "another evicts and counts": Case(
        OTHERS, "evicting", evicted=9, has_records=False, complete=False
    ),
    "another evicts, and nothing is counted": Case(
        ALL,
        "terminating",
        0,
        2,
        terminating="ab",
        finish=after(30),
        has_records=False,
        complete=False,
    ),
    "another evicts beside our records": Case(
        OTHERS, "evicting", evicted=11, recorded=11, complete=False
    ),
    "only the record counts": Case(
        with_message(ALL, "9 pods evicted."), "evicting", evicted=7, recorded=7
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_progress(case: Case) -> None:
    result = progress(
        case.rule,
        tolerated=case.tolerated,
        recorded=case.recorded,
        terminating=case.terminating,
        has_records=case.has_records,
    )

    assert result.state == case.state
    assert "".join(key.name for key in result.terminating) == (
        case.terminating if case.evicted else ""
    )
    assert result.complete == case.complete
    assert len(result.pending) == case.pending
    assert result.evicted == case.evicted
    assert result.finish == case.finish


RATED = rule("r", select(), annotations={"sully.dev/eviction-rate": "1/h"})


@pytest.mark.parametrize(
    ("one", "plane", "want"),
    [
        (
            RATED,
            ControlPlane.SULLY,
            ("evicting", EvictionRate(1, timedelta(hours=1), 1), after(3600)),
        ),
        (RATED, ControlPlane.KUBERNETES, ("evicting", None, LATER)),
        (PAUSED, ControlPlane.SULLY, ("paused", None, None)),
        (PAUSED, ControlPlane.KUBERNETES, ("evicting", None, LATER)),
    ],
    ids=["a rate", "Kubernetes ignores rates", "a pause", "Kubernetes ignores pauses"],
)
def test_annotations_count_where_the_evictor_honors_them(
    one: DeviceTaintRule,
    plane: ControlPlane,
    want: tuple[str, EvictionRate | None, datetime | None],
) -> None:
    result = progress(one, plane=plane)

    assert (result.state, result.rate, result.finish) == want


def test_rules_that_evict_nobody_are_left_out() -> None:
    snapshot = Snapshot([], taken=LATER)
    rules = [rule("a", select(), taint("NoSchedule")), rule("b", select(), taint("None"))]

    assert not list(progress_of(rules, snapshot.exposures, snapshot.of(TAINT_RECORDS), LATER))


def rated(name: str, device: str, rate: int = 1, together: str = "t") -> DeviceTaintRule:
    marks = msgspec.structs.replace(taint(), evictions_per_second=rate)
    return rule(name, select(device=device), marks, labels={"sully.dev/taint": together})


TOGETHER = {
    "one rate for those that were made together": (rated("r-b", "b"), (after(1), after(2))),
    "others have their own": (
        rated("r-b", "b", together="u"),
        (after(1), after(1)),
    ),
    "and so has one that was given another since": (rated("r-b", "b", 2), (after(1), after(0.5))),
}


@pytest.mark.parametrize(("other", "want"), TOGETHER.values(), ids=TOGETHER)
def test_rules_that_share_a_rate(other: DeviceTaintRule, want: tuple[datetime, datetime]) -> None:
    rules = [rated("r-a", "a"), other]
    snapshot = Snapshot(
        [
            Objects(SLICES, [slice_("s", device("a"), device("b"))]),
            Objects(RULES, rules),
            Objects(CLAIMS, [_claim(name, ()) for name in ("a", "b")]),
            Objects(CONSUMER_PODS, [_pod(name, terminating=False) for name in ("a", "b")]),
            # Those that may go immediately have gone.
            Objects(TAINT_RECORDS, [record(rule, 20) for rule in rules]),
        ],
        taken=LATER,
    )
    records = snapshot.of(TAINT_RECORDS)

    shown = list(progress_of(rules, snapshot.exposures, records, LATER))

    assert tuple(item.finish for item in shown) == want


FINISHES: dict[str, tuple[list[float], int | None, int, float | None]] = {
    "nobody": ([], 1, 0, None),
    "nobody, at any rate": ([], None, 0, None),
    "overdue": ([-50, -5], None, 0, 0),
    "the last one": ([-5, 30, 10], None, 0, 30),
    "ten go immediately": ([0] * 10, 1, 0, 0),
    "and then one by one": ([0] * 13, 1, 0, 3),
    "twice as fast": ([0] * 14, 2, 0, 2),
    "the first ones have gone": ([0] * 3, 1, 20, 3),
    "a late one after the rate": ([*[0] * 12, 60], 1, 0, 60),
}


@pytest.mark.parametrize(("dues", "rate", "begun", "want"), FINISHES.values(), ids=FINISHES)
def test_finish(dues: list[float], rate: int | None, begun: int, want: float | None) -> None:
    line = {Key("ns", f"p-{at}"): after(due) for at, due in enumerate(dues)}

    limit = EvictionRate(rate) if rate is not None else None
    result = eviction_times(line, limit, LATER, started=bool(begun))

    assert max(result.values(), default=None) == (after(want) if want is not None else None)


def left(namespace: str, uid: str) -> EvictionRecord:
    cause = EvictionCause(
        kind="DeviceTaintRule", name="r", uid=uid, key="k", effect="NoExecute", device="d"
    )
    gone = EvictedPod(namespace=namespace, name="p", uid="u")
    return EvictionRecord(
        metadata=ObjectMeta(name="u", namespace=namespace),
        spec=EvictionRecordSpec(pod=gone, causes=(cause,), evicted_time=NOON),
    )


NAMESPACES: dict[str, tuple[Any, str, int, int, str]] = {
    "one with a pod": (ALL, "ns-a", 1, 2, "evicting"),
    "one without": (ALL, "ns-c", 0, 0, "done"),
    "paused": (PAUSED, "ns-a", 1, 2, "paused"),
}


@pytest.mark.parametrize(
    ("one", "namespace", "pending", "evicted", "state"), NAMESPACES.values(), ids=NAMESPACES
)
def test_one_namespace(
    one: DeviceTaintRule, namespace: str, pending: int, evicted: int, state: str
) -> None:
    uid = one.metadata.uid
    records = [left("ns-a", uid), left("ns-a", uid), left("ns-a", "other"), left("ns-b", uid)]

    result = in_namespace(namespace, progress(one), count_evicted(namespace, records), LATER)

    assert (len(result.pending), result.evicted, result.state) == (pending, evicted, state)
    assert all(key == Key("ns-a", "a") for key in result.pending)


def test_who_sees_no_pods_does_not_know() -> None:
    known = Snapshot([Objects(RULES, [ALL])], taken=LATER)
    rules, records = known.of(RULES).values(), known.of(TAINT_RECORDS)

    (result,) = progress_of(rules, known.exposures, records, LATER, visible=False)

    assert (result.state, result.finish) == ("unknown", None)


PATCHED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a rule has a row of its own": ({"rules": [ALL]}, set()),
    "a driver": ({"slices": [slice_("s", device("a", taint()), device("b"))]}, {"a"}),
    "a slice of taints": (
        {"slices": [slice_("s", device("a"), device("b"), device_taints=(("b", taint()),))]},
        {"b"},
    ),
    "a patch": ({"patches": [patch("p", taints=(taint(),))]}, {"a", "b"}),
    "one that prevents new pods from being scheduled": (
        {"patches": [patch("p", taints=(taint("NoSchedule"),))]},
        set(),
    ),
    "one that is tolerated": (
        {
            "patches": [patch("p", taints=(taint(),))],
            "claims": [_claim("a", (exists(),)), _claim("b", ())],
        },
        {"b"},
    ),
}


@pytest.mark.parametrize(("objects", "want"), PATCHED.values(), ids=PATCHED)
def test_pods_evicted_without_a_rule(objects: dict[str, Any], want: set[str]) -> None:
    usual = {
        "slices": [slice_("s", device("a"), device("b"))],
        "claims": [_claim(name, ()) for name in ("a", "b")],
        "pods": [_pod(name, terminating=False) for name in ("a", "b")],
        **objects,
    }
    kinds: dict[str, Kind[Any]] = {
        "slices": SLICES,
        "rules": RULES,
        "patches": PATCHES,
        "claims": CLAIMS,
        "pods": CONSUMER_PODS,
    }
    snapshot = Snapshot([Objects(kinds[name], entry) for name, entry in usual.items()], taken=LATER)

    assert {key.name for key in due_without_rules(snapshot.exposures)} == want


def test_a_namespace_waits_its_turn() -> None:
    marks = msgspec.structs.replace(taint(), evictions_per_second=1)
    whole = progress(rule("r", select(), marks), recorded=20)

    turns = [in_namespace(name, whole, {}, LATER).finish for name in ("ns-a", "ns-b")]

    assert turns == [after(1), after(2)]
