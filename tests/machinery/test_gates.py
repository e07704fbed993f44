"""Feature gates: defaults, overrides, what cannot be reported."""

import pytest

from sully.machinery.compat import Compat
from sully.machinery.gates import DEFAULTS, LOCKED, NEEDS, OURS, GateError, Gates, parse_gates


def test_defaults() -> None:
    assert Gates().all() == DEFAULTS
    assert list(Gates().all()) == sorted(DEFAULTS)


def test_overrides() -> None:
    gates = parse_gates(" DRAListTypeAttributes=true, DRAConsumableCapacity=False,,")

    assert gates["DRAListTypeAttributes"]
    assert not gates["DRAConsumableCapacity"]
    assert gates["DRADeviceTaintRules"] == DEFAULTS["DRADeviceTaintRules"]


def test_the_last_word_counts() -> None:
    assert not parse_gates("DRADeviceTaints=true,DRADeviceTaints=false")["DRADeviceTaints"]


def test_kubernetes_has_nothing_of_ours() -> None:
    gates = parse_gates("", Compat.KUBERNETES)

    assert {name for name in OURS if gates[name]} == set()
    assert all(gates[name] == DEFAULTS[name] for name in DEFAULTS if name not in OURS)
    assert parse_gates("SullyTaintSlices=true", Compat.KUBERNETES)["SullyTaintSlices"]


@pytest.mark.parametrize(("name", "needed"), NEEDS.items())
def test_what_needs_another_goes_off_with_it(name: str, needed: str) -> None:
    assert not parse_gates(f"{needed}=false")[name]
    assert parse_gates(f"{needed}=true")[name] is DEFAULTS[name]
    assert not parse_gates(f"{needed}=false,{name}=false")[name]
    for text in (f"{name}=true,{needed}=false", f"{needed}=false,{name}=true"):
        with pytest.raises(GateError, match=f"{name} needs {needed}, which is switched off"):
            parse_gates(text)


@pytest.mark.parametrize("name", sorted(LOCKED))
def test_locked_gates_stay_on(name: str) -> None:
    assert parse_gates(f"{name}=true")[name]
    with pytest.raises(GateError, match=f"feature gate {name} is locked to true"):
        parse_gates(f"{name}=false")


REFUSALS = {
    "unknown": ("Nothing=true", r'unknown feature gate "Nothing" \(one of: DRA'),
    "no value": ("DRADeviceTaints", 'feature gate DRADeviceTaints must be true or false, not ""'),
    "a number": (
        "DRADeviceTaints=1",
        'feature gate DRADeviceTaints must be true or false, not "1"',
    ),
}


@pytest.mark.parametrize(("text", "problem"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(text: str, problem: str) -> None:
    with pytest.raises(GateError, match=problem):
        parse_gates(text)


def test_asking_for_what_does_not_exist_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Gates()["Nothing"]
