"""What expressions cost: the worst case beforehand, and the units counted while they run."""

from __future__ import annotations

import pytest

from sully.machinery.cel import (
    DEFAULT_LIMIT,
    CostLimitError,
    DeviceInput,
    device_environment,
)

DOMAIN = "dra.example.com"
HERE = f'device.attributes["{DOMAIN}"]'

# The numbers are those of Kubernetes for the same expressions.
REFERENCE = {
    "true": 0,
    'device.driver == ""': 2,
    f'device.driver == "{DOMAIN}"': 4,
    f"{HERE}.name": 4,
    f"{HERE}.name > 0": 5,
    f'{HERE}.name == "fish"': 5,
    '"dom" in device.attributes': 3,
    f'{HERE}.name.isGreaterThan(semver("0.0.1"))': 6,
    f'device.capacity["{DOMAIN}"].name.isGreaterThan(quantity("1Ki"))': 6,
    f"{HERE}.a && {HERE}.b && {HERE}.c": 12,
    f'device.attributes.exists_one(x, x == "{DOMAIN}")': 164,
    f'{HERE}.exists_one(x, x == "services")': 133,
    f'{HERE}.name.split("example").size() >= 2': 19,
    f'{HERE}.name.matches("[^a]?sym")': 18,
    f"cel.bind(dra, {HERE}, dra.name)": 15,
    "device.allowMultipleAllocations == true": 3,
}


@pytest.mark.parametrize(("expression", "want"), REFERENCE.items())
def test_reference_costs(expression: str, want: int) -> None:
    assert device_environment().compile(expression).cost == want


def test_has_costs_nothing() -> None:
    env = device_environment()

    assert env.compile(f"has({HERE}.name)").cost == env.compile(f"{HERE}.size() > 0").cost - 2


def _nested(ranged: str, depth: int, body: str) -> str:
    names = "abcdefgh"[:depth]
    return "".join(f"{ranged}.all({name}, " for name in names) + body + ")" * depth


TOO_COMPLEX = {
    "four loops over domains": _nested("device.attributes", 4, "a != b || c != d"),
    "five loops over attributes": _nested('device.attributes["d"]', 5, "a != b"),
    "patterns from the input": _nested("device.attributes", 3, "a.matches(b)"),
    "lists of lists": (
        'device.attributes["d"].map(a, device.attributes["d"].map(b, device.attributes["d"].map(c,'
        ' device.attributes["d"].map(d, a + b + c + d)))).size() > 0'
    ),
    "texts of unknown size": (
        'device.attributes["d"].s.split("a").map(x, x.split("b").map(y, y.split("c").map(z,'
        ' z.replace("q", "r")))).size() > 0'
    ),
    "a range of unknown size": 'lists.range(device.attributes["d"].n).all(x, x > 0)',
}
AFFORDABLE = {
    "a long pattern": f'device.driver.matches("{"(a+)+" * 40}")',
    "a long conjunction": " && ".join(["device.driver == 'x'"] * 200),
    "two loops": _nested("device.attributes", 2, "a != b"),
}


@pytest.mark.parametrize("expression", TOO_COMPLEX.values(), ids=TOO_COMPLEX.keys())
def test_too_complex(expression: str) -> None:
    assert device_environment().compile(expression).cost > DEFAULT_LIMIT


@pytest.mark.parametrize("expression", AFFORDABLE.values(), ids=AFFORDABLE.keys())
def test_affordable(expression: str) -> None:
    assert device_environment().compile(expression).cost <= DEFAULT_LIMIT


DEVICE = DeviceInput(
    DOMAIN,
    {
        "name": {"string": "fish"},
        "count": {"int": 3},
        "ready": {"bool": True},
        "ver": {"version": "1.2.3"},
        "other.com/x": {"string": "y"},
    },
    {"mem": {"value": "10Gi"}},
)
COUNTED = {
    "true": 0,
    f'device.driver == "{DOMAIN}"': 4,
    f'{HERE}.name == "fish"': 5,
    f"{HERE}.count > 2": 5,
    f'{HERE}.ver.isGreaterThan(semver("0.0.1"))': 6,
    '"other.com" in device.attributes': 3,
    f'{HERE}.ready || {HERE}.name == "x"': 4,
    "[1, 2, 3].exists(x, x == 1)": 20,
    f"cel.bind(dra, {HERE}, dra.ready && dra.ready)": 7,
}


@pytest.mark.parametrize(("expression", "want"), COUNTED.items())
def test_counted(expression: str, want: int) -> None:
    program = device_environment().compile(expression)

    value, cost = program.evaluate_counted(DEVICE, DEFAULT_LIMIT)

    assert (value, cost) == (True, want)
    assert cost <= program.cost


def test_evaluation_stops_at_the_limit() -> None:
    program = device_environment().compile("[1, 2, 3].all(x, [1, 2, 3].all(y, x * y > 0))")

    with pytest.raises(CostLimitError, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate_counted(DEVICE, 40)
    assert program.evaluate_counted(DEVICE, 1000)[0] is True


@pytest.mark.parametrize("operator", ["||", "&&"])
def test_nothing_absorbs_the_limit(operator: str) -> None:
    expression = f"[1, 2, 3].exists(x, x > 2) {operator} {'true' if operator == '||' else 'false'}"

    with pytest.raises(CostLimitError):
        device_environment().compile(expression).evaluate_counted(DEVICE, 12)


def test_what_may_exceed_the_limit_is_counted() -> None:
    many = DeviceInput("d", {f"a{place}": {"int": place} for place in range(32)})
    expression = _nested('device.attributes["d"]', 5, "a != b || true")
    program = device_environment().compile(expression)

    with pytest.raises(CostLimitError):
        program.evaluate(many)
