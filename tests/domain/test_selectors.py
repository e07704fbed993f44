"""What expressions see of devices, and how long it is cached."""

from __future__ import annotations

from sully.api.resource.types import DeviceCapacity
from sully.domain.devices import selectors
from sully.domain.devices.selectors import Content, content_of, matches, shared
from sully.machinery.cel import CostBudget
from sully.testing.builders import DRIVER, cel, device, text

MODEL = f'device.attributes["{DRIVER}"].model'


def test_devices_that_look_alike_have_one_content() -> None:
    content = content_of(DRIVER, device("gpu-0", model=text("A100")))

    assert content_of(DRIVER, device("gpu-7", model=text("A100"))) is content


DIFFERENT = {
    "attribute": content_of(DRIVER, device("gpu-0", model=text("H100"))),
    "driver": content_of("other", device("gpu-0", model=text("A100"))),
    "capacity": shared(DRIVER, {"model": text("A100")}, {"memory": DeviceCapacity(value="1")}),
    "sharing": shared(DRIVER, {"model": text("A100")}, {}, allow_multiple_allocations=True),
    "no sharing": shared(DRIVER, {"model": text("A100")}, {}, allow_multiple_allocations=False),
}


def test_devices_that_differ_in_anything_do_not() -> None:
    results = [content_of(DRIVER, device("gpu-0", model=text("A100"))), *DIFFERENT.values()]

    assert len(set(results)) == len(results)
    assert not any(results[0].same_as(item) for item in results[1:])


def test_a_flood_of_devices_that_are_all_different_is_not_kept() -> None:
    first = content_of(DRIVER, device("gpu-0", model=text("first")))
    for number in range(selectors._MOST_CONTENTS + 10):
        content = content_of(DRIVER, device("gpu-0", uuid=text(str(number))))
        if number <= selectors._MOST_INPUTS:
            assert matches(cel("true"), content, CostBudget())

    assert len(selectors._contents) <= selectors._MOST_CONTENTS
    assert len(selectors._inputs) <= selectors._MOST_INPUTS
    # It was forgotten, but is made the same way.
    assert content_of(DRIVER, device("gpu-0", model=text("first"))).same_as(first)


def test_a_flood_of_expressions_is_not_kept() -> None:
    content = Content(DRIVER, {"model": text("A100")}, {})
    budget = CostBudget()
    for number in range(selectors._MOST_VERDICTS + 10):
        assert not matches(cel(f'{MODEL} == "{number}"'), content, budget)

    assert len(content._verdicts) <= selectors._MOST_VERDICTS
    assert matches(cel(f'{MODEL} == "A100"'), content, budget)
