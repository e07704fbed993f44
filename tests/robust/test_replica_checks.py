"""What `make robust ARGS=replicas` checks by, shown to see each thing that must never happen."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import manifests
from kills.fleet import PODS
from replicas import audits
from replicas.audits import Act, Term
from replicas.clients import Acknowledged, Clients
from replicas.counting import Counter
from replicas.faults import FAULTS, plan
from replicas.following import Watch, WatchHistory
from replicas.ledger import Ledger
from replicas.rounds import split
from replicas.work import early, late, nodes_for, pod, templates
from sully.client.transport import WatchEvent
from sully.testing.clock import NOON

Obj = dict[str, Any]
A100, H100, L4 = "worker-0001", "worker-0000", "worker-0002"


def claim(uid: str, user: str, *pools: str) -> Obj:
    results = [{"driver": "d", "pool": pool, "device": "gpu-0"} for pool in pools]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": user}]}
    return manifests.body("ResourceClaim", uid, status=status, uid=uid)


def pod_at(
    name: str, node: str, *, mark: str = "", terminating: bool = False, running: bool = True
) -> Obj:
    conditions = [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": mark}]
    status: Obj = {"phase": "Running" if running else "Pending"}
    if mark:
        status["conditions"] = conditions
    deletion = {"deletionTimestamp": "then"} if terminating else {}
    return manifests.pod(name, {"nodeName": node}, status, uid=f"{name}-uid", **deletion)


def ledger_of(*events: tuple[str, Obj], pools: tuple[str, ...] = (), big: bool = True) -> Ledger:
    ledger = Ledger(tainted=set(pools), big_rule=big)
    for kind, obj in events:
        saw = ledger.saw_pod if "spec" in obj else ledger.saw_claim
        saw(kind, obj)
    return ledger


ONE = ("ADDED", pod_at("one-1", A100))
HELD = ("ADDED", claim("c", "one-1-uid", A100))
MARKED = ("MODIFIED", pod_at("one-1", A100, mark="noon", terminating=True))
GONE = ("DELETED", pod_at("one-1", A100, mark="noon", terminating=True))
STORIES = {
    "evicted": ([HELD, ONE, MARKED, GONE, ("DELETED", HELD[1])], []),
    "went without a word": (
        [HELD, ONE, ("DELETED", ONE[1])],
        ["one-1 was deleted without having been evicted"],
    ),
    "marked twice": (
        [HELD, MARKED, ("MODIFIED", pod_at("one-1", A100, mark="one", terminating=True))],
        ["one-1 was marked at noon and at one"],
    ),
    "mark taken away meanwhile": (
        [HELD, MARKED, ONE, ("MODIFIED", pod_at("one-1", A100, mark="one"))],
        [],
    ),
    "moved": (
        [HELD, ONE, ("MODIFIED", pod_at("one-1", L4))],
        ["one-1 was bound to worker-0001 and to worker-0002"],
    ),
    "evicted from where no taint is": (
        [("ADDED", claim("c", "any-1-uid", L4)), ("ADDED", pod_at("any-1", L4, mark="noon"))],
        ["any-1 on worker-0002 was evicted for no reason"],
    ),
    "evicted though it tolerates": (
        [
            ("ADDED", claim("c", "steadfast-1-uid", A100)),
            ("ADDED", pod_at("steadfast-1", A100, terminating=True)),
        ],
        ["steadfast-1 on worker-0001 was evicted for no reason"],
    ),
    "a device twice, though briefly": (
        [HELD, ("ADDED", claim("d", "one-2-uid", A100)), ("DELETED", HELD[1])],
        ["d/worker-0001/gpu-0 is held by d and by c"],
    ),
}


@pytest.mark.parametrize(("events", "problems"), STORIES.values(), ids=STORIES)
def test_the_ledger_sees(events: list[tuple[str, Obj]], problems: list[str]) -> None:
    ledger = ledger_of(*events)
    ledger.check_pods({history.name for history in ledger.pods.values()})

    assert ledger.problems == problems


def test_what_was_acknowledged_must_have_been_there_once() -> None:
    again = ("ADDED", {**ONE[1], "metadata": {"uid": "other", "name": "one-1"}})
    ledger = ledger_of(HELD, ONE, again)
    ledger.check_pods({"one-1", "one-2"})

    assert ledger.problems == [
        "one-2 was acknowledged and never seen",
        "one-1 existed 2 times",
    ]


UNFINISHED = {
    "all is done": ([HELD, MARKED, GONE, ("DELETED", HELD[1])], []),
    "still there": ([HELD, ONE], ["one-1 on worker-0001 must be evicted and still exists"]),
    "device not released": (
        [HELD, MARKED, GONE],
        ["1 devices are held, by 1 claims of 0 pods"],
    ),
    "claimed twice": (
        [
            ("ADDED", claim("c", "spared-1-uid", L4)),
            ("ADDED", claim("d", "spared-1-uid")),
            ("ADDED", claim("shared-1", "nobody")),
            ("ADDED", pod_at("spared-1", L4)),
        ],
        ["1 devices are held, by 2 claims of 1 pods"],
    ),
    "does not run": (
        [("ADDED", pod_at("spared-1", L4, running=False))],
        ["spared-1 must not be evicted and does not run"],
    ),
}


@pytest.mark.parametrize(("events", "left"), UNFINISHED.values(), ids=UNFINISHED)
def test_the_ledger_knows_what_is_to_be_done(
    events: list[tuple[str, Obj]], left: list[str]
) -> None:
    assert ledger_of(*events).unfinished() == left


def test_the_ledger_compares_records_and_counts() -> None:
    ledger = ledger_of(
        *(HELD, MARKED, GONE),
        ("ADDED", claim("d", "any-1-uid", H100)),
        ("DELETED", pod_at("any-1", H100, mark="noon")),
        pools=(H100,),
    )
    record = {"spec": {"pod": {"uid": "one-1-uid"}}}
    other = {"spec": {"pod": {"uid": "nobody"}}}
    ledger.check_records([record, record, other])
    condition = {"type": "sully.dev/Evicted", "message": "2 pods evicted."}
    big = {"metadata": {"name": "all-a100"}, "status": {"conditions": [condition]}}

    assert ledger.problems == [
        "there is no record of the eviction of any-1",
        "there is a record of nobody, which was not evicted",
        "2 records are about one-1-uid",
    ]
    assert ledger.uncounted([big, {"metadata": {"name": H100}}]) == [
        "rule all-a100 counts 2 pods, 1 were evicted",
        "rule worker-0000 counts 0 pods, 1 were evicted",
    ]


def test_the_leader_is_the_holder_of_the_lease() -> None:
    ledger = Ledger()
    seen = [("sully-controllers", "host_7_x"), ("another", "host_8_y"), ("sully-controllers", "")]
    for name, holder in [*seen, seen[0], seen[0]]:
        spec = {"holderIdentity": holder, "acquireTime": "2030-01-01T12:00:00.000000Z"}
        ledger.saw_lease("MODIFIED", {"metadata": {"name": name}, "spec": spec})

    assert ledger.holder == "host_7_x"
    assert ledger.led == [("host_7_x", NOON), ("host_7_x", NOON)]


def act(
    replica: str, at: float, what: str = "update pods", name: str = "p", lasts: float = 0.1
) -> Act:
    begun = NOON + timedelta(seconds=at)
    user = "device-taint-eviction-controller"
    return Act(replica, begun, begun + timedelta(seconds=lasts), user, what, "work", name)


LED = [Term("a", NOON), Term("b", NOON + timedelta(seconds=20))]
LOGS = {
    "each in its time": ([act("a", 3), act("b", 21)], [], 0),
    "woke up and went on": (
        [act("a", 3), act("a", 25)],
        ["a did update pods p at 12:00:25.000000 though b led since 12:00:20.000000"],
        0,
    ),
    "its lease does not count": ([act("a", 25, "update leases", "sully-controllers")], [], 0),
    "on its way when the lease passed on": ([act("a", 19, lasts=3)], [], 1),
    "evicted twice": (
        [act("a", 3, "delete pods"), act("b", 21, "delete pods")],
        ["p was evicted 2 times"],
        0,
    ),
}


@pytest.mark.parametrize(("acts", "problems", "in_flight"), LOGS.values(), ids=LOGS)
def test_the_logs_show_who_acted_when(acts: list[Act], problems: list[str], in_flight: int) -> None:
    logs = {name: [act for act in acts if act.replica == name] for name in "abc"}

    assert audits.judge(logs, LED) == audits.Verdict(problems, in_flight)


def test_the_logs_show_how_long_it_took() -> None:
    node = replace(act("b", 15), namespace="kube-node-lease")
    logs = {
        "a": [act("a", 12)],
        "b": [node, act("b", 14, "update leases", "sully-controllers"), act("b", 17)],
    }

    assert audits.taken_over(logs, "a", NOON + timedelta(seconds=2)) == ("b", 15.1)
    assert audits.taken_over({"a": logs["a"]}, "a", NOON) is None


def event(version: int, kind: Any = "MODIFIED", name: str = "p") -> WatchEvent[Obj]:
    obj = None if kind == "BOOKMARK" else {"metadata": {"name": name}}
    return WatchEvent(kind, obj, str(version))


def history_of(*reported: list[WatchEvent[Obj]]) -> tuple[WatchHistory, list[str]]:
    heard: list[str] = []

    def saw(kind: str, obj: Obj) -> None:
        heard.append(f"{kind} {obj['metadata']['name']}")

    history = WatchHistory(PODS, "work", saw)
    history.last = 100
    history.watches = [Watch(history, Clients([], random.Random(0)), 0) for _ in reported]
    for watch, events in zip(history.watches, reported, strict=True):
        for event in events:
            watch.take(event)
    return history, heard


TOLD = {
    "the same": ([[event(1), event(2)], [event(1), event(2)]], []),
    "later ones do not count": ([[event(1), event(101)], [event(1)]], []),
    "one is missing": (
        [[event(1), event(2), event(3)], [event(1), event(3)]],
        ["watches 0 and 1 of pods delivered different events: [(2, 'MODIFIED', 'p')]"],
    ),
    "one comes twice": (
        [[event(1), event(2), event(1)]],
        ["received (1, 'MODIFIED', 'p') after version 2"],
    ),
    "what a bookmark promised comes after all": (
        [[event(5, "BOOKMARK"), event(4)]],
        ["received (4, 'MODIFIED', 'p') after version 5"],
    ),
}


@pytest.mark.parametrize(("reported", "problems"), TOLD.values(), ids=TOLD)
def test_watches_must_report_the_same(
    reported: list[list[WatchEvent[Obj]]], problems: list[str]
) -> None:
    assert history_of(*reported)[0].problems() == problems


def test_the_first_to_report_feeds_the_ledger() -> None:
    events = [event(1, "ADDED"), event(2), event(3, "DELETED")]
    history, heard = history_of(events[:2], events)

    assert heard == ["ADDED p", "MODIFIED p", "DELETED p"]
    assert [watch.state(100) for watch in history.watches] == [{"p": 2}, {}]


def test_a_read_older_than_what_was_acknowledged_is_seen() -> None:
    counter = Counter("counter-0", acknowledged=7)
    counter.read(7, 7)
    counter.read(7, 9)
    # A user has seen 9: nobody may see less from now on.
    counter.read(counter.acknowledged, 8)

    assert counter.problems == ["counter-0 showed 8 after 9 was acknowledged"]


def test_requests_are_counted_that_were_made_and_answered_within_a_time() -> None:
    times = [Acknowledged(1, 2), Acknowledged(2, 5), Acknowledged(3, 4), Acknowledged(4, 7)]

    assert Clients([], random.Random(0), times).number(1.5, 6) == 2


def test_a_plan_has_every_fault_before_one_comes_again() -> None:
    short, long = plan(random.Random(7), 2), plan(random.Random(7), 2 * len(FAULTS))

    assert [fault.moves for fault in short] == [True, True]
    assert {item.name for item in long[: len(FAULTS)]} == {fault.name for fault in FAULTS}
    assert long == plan(random.Random(7), 2 * len(FAULTS))
    assert long != plan(random.Random(8), 2 * len(FAULTS))


@pytest.mark.parametrize("pods", [1, 60, 1000])
def test_there_is_a_device_for_every_pod(pods: int) -> None:
    planned = [*early(pods), *late(pods)]
    names = {item.name for item in planned}
    made = {template["metadata"]["name"] for template in templates()}
    used = {
        pod(item)["spec"]["resourceClaims"][0].get("resourceClaimTemplateName") for item in planned
    }

    assert len(names) == pods
    assert used - {None} <= made
    assert nodes_for(pods) * 8 / 3 >= pods * 0.7


def test_split_leaves_nothing_out() -> None:
    assert [list(part) for part in split(range(7), 3)] == [[0, 1], [2, 3, 4], [5, 6]]
    assert split(range(7), 0) == []
