"""Rules and patches with costly expressions: nothing waits, and only what is proven is selected."""

from __future__ import annotations

from itertools import count

import pytest

from sully.client.transport import Key
from sully.controllers.evaluation import SelectorEvaluation
from sully.controllers.framework.controller import DONE, REQUEUE, Result
from sully.domain.devices.pools import DeviceId, PoolId
from sully.runtime.evaluation import Evaluator
from sully.scheduler.caches.device_cache import AllocatableDevices
from sully.testing.builders import DRIVER, cel, device, rule, select, slice_, text
from views.feeds import Scene

_NUMBERS = count()
LIST = f"[{','.join(map(str, range(20)))}]"
POOL = PoolId(DRIVER, "node-1")
KEY = Key("DeviceTaintRule", "rule")


def loop(model: str) -> str:
    """Return an expression of some 1500 units; verdicts are cached, so it is a new one."""
    model_is = f'device.attributes["{DRIVER}"].model == "{model}"'
    return f"{LIST}.all(a, {LIST}.all(b, true)) && {next(_NUMBERS)} >= 0 && {model_is}"


def scene(*models: str) -> Scene:
    made = Scene(defer=True)
    devices = [device(f"gpu-{at}", model=text(model)) for at, model in enumerate(models)]
    made.slices.put(slice_("slice-1", *devices, pool=POOL.pool))
    return made


def selected(made: Scene) -> list[str]:
    return [name.rpartition("/")[2] for name, taints in made.taints().items() if taints]


def offered(made: Scene) -> list[str]:
    known = made.inventory.pool(POOL)
    assert known is not None
    shelf = AllocatableDevices(made.inventory)
    return [
        device.published.device.name
        for slice_ in known.slices.values()
        for device in shelf.devices(slice_)
    ]


async def evaluate(made: Scene, units: int = 10**9) -> Result:
    controller = SelectorEvaluation(
        inventory=made.inventory, evaluator=Evaluator(made.clock), clock=made.clock, units=units
    )
    return await controller.reconcile(KEY)


def heavy(model: str) -> object:
    return rule(selector=select(selectors=cel(loop(model))))


async def test_costly_expressions_are_evaluated_later() -> None:
    made = scene("a", "b")
    made.rules.put(heavy("b"))

    assert selected(made) == []
    assert offered(made) == [], "nobody gets a device whose taints are not known"
    heard = made.changes()
    assert await evaluate(made) is DONE

    assert selected(made) == ["gpu-1"]
    assert offered(made) == ["gpu-0", "gpu-1"]
    assert [list(event.pools) for event in heard] == [[POOL]]


def test_cheap_expressions_are_evaluated_immediately() -> None:
    made = scene("a", "b")
    model_is = f'device.attributes["{DRIVER}"].model == "b"'
    made.rules.put(rule(selector=select(selectors=cel(model_is))))

    assert selected(made) == ["gpu-1"]


async def test_what_exceeds_the_budget_selects_what_is_proven() -> None:
    made = scene("b", "c", "d", "e")
    made.rules.put(heavy("b"))
    selected(made)

    assert await evaluate(made, units=4000) is REQUEUE

    assert selected(made) == ["gpu-0"]
    assert len(offered(made)) == 4
    problems = list(made.exposures.problems(made.inventory.content_rules()[0]))
    assert [problem.device.device for problem in problems] == ["gpu-2", "gpu-3"]
    assert problems[0].choice.problem == "evaluation exceeds the budget of 4000 cost units"


async def test_the_next_pass_gets_further() -> None:
    made = scene("b", "c", "d", "b")
    made.rules.put(heavy("b"))
    selected(made)

    passes = [await evaluate(made, units=4000) for _ in range(2)]

    assert passes == [REQUEUE, DONE]
    assert selected(made) == ["gpu-0", "gpu-3"]


async def test_a_rule_that_changes_is_evaluated_again() -> None:
    made = scene("b", "c")
    made.rules.put(heavy("b"))
    selected(made)
    made.rules.put(heavy("c"))
    selected(made)

    await evaluate(made)

    assert selected(made) == ["gpu-1"]


async def test_a_rule_that_is_gone() -> None:
    made = scene("b", "c")
    gone = heavy("b")
    made.rules.put(gone)
    selected(made)
    made.rules.remove(gone)

    assert await evaluate(made) is DONE
    assert selected(made) == []
    assert len(offered(made)) == 2


@pytest.mark.parametrize("defer", [True, False])
async def test_it_comes_to_the_same_as_without_delay(defer: bool) -> None:
    made = Scene(defer=defer)
    devices = [device(f"gpu-{at}", model=text(model)) for at, model in enumerate("abcab")]
    made.slices.put(slice_("slice-1", *devices, pool=POOL.pool))
    made.rules.put(heavy("a"))
    selected(made)
    if defer:
        await evaluate(made)

    assert selected(made) == ["gpu-0", "gpu-3"]
    assert made.inventory.device(DeviceId(*POOL, "gpu-1")) is not None
