"""When clusters leave placements, as users say it."""

import argparse

import pytest

from sully.cli.running.placementflags import add_placement_flags, placement_settings
from sully.controllers.placement.settings import PlacementSettings, behaviour
from sully.domain.placement.behaviour import REFERENCE, improved

TOLERATE, BUDGET = "--default-cluster-toleration-seconds", "--cluster-leave-budget-per-minute"
CASES = {
    "nothing": ([], PlacementSettings()),
    "both": (
        [TOLERATE, "300", BUDGET, "5"],
        PlacementSettings(toleration_seconds=300, leaves_per_minute=5),
    ),
    "nobody leaves": ([f"{BUDGET}=0"], PlacementSettings(leaves_per_minute=0)),
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_placement_flags(made)
    return made


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES.keys())
def test_settings(given: list[str], want: PlacementSettings) -> None:
    assert placement_settings(parser().parse_args(given)) == want


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "", "1234567890"])
@pytest.mark.parametrize("flag", [TOLERATE, BUDGET])
def test_no_number(flag: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([f"{flag}={text}"])

    assert f"must be a whole number of at most 9 digits, not {text!r}" in capsys.readouterr().err


def test_the_reference_knows_no_flags() -> None:
    settings = PlacementSettings(toleration_seconds=300, leaves_per_minute=5)
    assert behaviour(settings, strict=True) == REFERENCE
    assert behaviour(settings, strict=False) == improved(
        health_toleration_seconds=300, leaves_per_minute=5
    )
