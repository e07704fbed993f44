"""Whether a pod may be evicted."""

from dataclasses import dataclass, field
from typing import Any

import pytest

import manifests
from api.core.bodies import pod
from api.core.writing import HERE, World, create
from sully.api.policy.eviction import (
    Eviction,
    check_eviction,
    decide_eviction,
    with_disruption_target,
)
from sully.machinery.errors import ApiError, BadRequest, Forbidden, TooManyRequests

Obj = dict[str, Any]
READY = [{"type": "Ready", "status": "True"}]
NOW = "2026-03-01T12:00:00Z"


def _pod(phase: str = "Running", *, ready: bool = True, **metadata: Any) -> Obj:
    made = create("pods", pod(metadata={"labels": {"app": "a"}})).obj
    made["metadata"] |= metadata
    made["status"] |= {"phase": phase, "conditions": READY if ready else []}
    return made


def _budget(name: str = "b", *, spec: Obj | None = None, **status: Any) -> Obj:
    body = manifests.budget(name, 1, app="a")
    body["spec"] = {"selector": body["spec"]["selector"], **(spec or {})}
    made = create("poddisruptionbudgets", body, group="policy").obj
    made["status"] |= {"observedGeneration": 1, **status}
    return made


@dataclass(frozen=True)
class Granted:
    pod: Obj = field(default_factory=_pod)
    budgets: tuple[Obj, ...] = ()
    spent: bool = False
    exact: bool = False


GRANTED = {
    "no budget": Granted(),
    "budget for others": Granted(
        budgets=(_budget(spec={"selector": {"matchLabels": {"app": "z"}}}),)
    ),
    "budget for nobody": Granted(budgets=(_budget(spec={"selector": None}),)),
    "budget with room": Granted(budgets=(_budget(disruptionsAllowed=2),), spent=True),
    "not started yet": Granted(_pod("Pending"), (_budget(),), exact=True),
    "ended": Granted(_pod("Failed"), (_budget(),)),
    "terminating anyway": Granted(_pod(deletionTimestamp=NOW), (_budget(),)),
    "unready, and the others suffice": Granted(
        _pod(ready=False), (_budget(desiredHealthy=1, currentHealthy=1),), exact=True
    ),
    "unready, and that does not matter": Granted(
        _pod(ready=False),
        (_budget(spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}),),
        exact=True,
    ),
}


@pytest.mark.parametrize("case", GRANTED.values(), ids=GRANTED.keys())
def test_granted(case: Granted) -> None:
    got = decide_eviction(case.pod, case.budgets, HERE.context())

    assert (got.budget is not None, got.exact) == (case.spent, case.exact)


def test_mark() -> None:
    got = with_disruption_target(_pod(), HERE.now)

    assert got["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": NOW,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


def test_spent_budget() -> None:
    budget = _budget(disruptionsAllowed=1, disruptedPods={"q": NOW})

    got = decide_eviction(_pod(), [budget], HERE.context())

    assert isinstance(got, Eviction)
    assert got.budget is not None
    status = got.budget["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"] == {"q": NOW, "p": NOW}
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("DisruptionAllowed", "False")
    ]
    assert budget["status"]["disruptionsAllowed"] == 1


REFUSED: dict[str, tuple[Obj, str, int]] = {
    "no room": (
        _budget(desiredHealthy=2, currentHealthy=2),
        "The disruption budget b needs 2 healthy pods and has 2 currently",
        0,
    ),
    "not counted yet": (
        _budget(disruptionsAllowed=5, observedGeneration=0),
        "The disruption budget b is still being processed by the server.",
        10,
    ),
    "more pods than needed, and none may go": (
        _budget(currentHealthy=3, desiredHealthy=0),
        "The disruption budget b does not allow evicting pods currently",
        0,
    ),
    "more pods than needed, and a reason": (
        _budget(
            currentHealthy=3,
            desiredHealthy=0,
            conditions=[
                {"type": "Other", "status": "False", "reason": "No", "message": "no"},
                {
                    "type": "DisruptionAllowed",
                    "status": "False",
                    "reason": "InsufficientPods",
                    "message": "wait",
                },
            ],
        ),
        "The disruption budget b does not allow evicting pods currently (InsufficientPods): wait",
        0,
    ),
    "cannot be counted": (
        _budget(
            conditions=[
                {
                    "type": "DisruptionAllowed",
                    "status": "False",
                    "reason": "SyncFailed",
                    "message": "no scale",
                }
            ]
        ),
        "The disruption budget b does not allow evicting pods currently because it failed sync:"
        " no scale",
        0,
    ),
}


@pytest.mark.parametrize(("budget", "cause", "retry"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(budget: Obj, cause: str, retry: int) -> None:
    with pytest.raises(TooManyRequests) as refusal:
        decide_eviction(_pod(), [budget], HERE.context())

    error = refusal.value
    assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
    wait = {"retryAfterSeconds": retry} if retry else {}
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    assert error.details == {"causes": causes, **wait}
    assert error.headers == ({"Retry-After": str(retry)} if retry else {})


def test_unready_pod_of_a_group_that_needs_it_is_protected() -> None:
    budget = _budget(desiredHealthy=2, currentHealthy=1)

    with pytest.raises(TooManyRequests):
        decide_eviction(_pod(ready=False), [budget], HERE.context())


@pytest.mark.parametrize(("strict", "code"), [(False, 400), (True, 500)])
def test_two_budgets(strict: bool, code: int) -> None:
    budgets = [_budget("a", disruptionsAllowed=1), _budget("b", disruptionsAllowed=1)]

    with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as refusal:
        decide_eviction(_pod(), budgets, World(strict=strict).context())

    assert refusal.value.code == code


def test_broken_budget() -> None:
    with pytest.raises(Forbidden) as refusal:
        decide_eviction(_pod(), [_budget(disruptionsAllowed=-1)], HERE.context())

    assert refusal.value.message == (
        'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative'
    )
    assert refusal.value.details is not None
    assert refusal.value.details["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b does not allow evicting pods currently:"
            " pdb disruptions allowed is negative",
        }
    ]


def test_body_about_another_pod() -> None:
    with pytest.raises(BadRequest, match="name in URL does not match name in Eviction object"):
        check_eviction("p", {"metadata": {"name": "q"}})
