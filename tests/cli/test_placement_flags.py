"""When clusters leave placements, as users say it."""

import argparse

import pytest

from sully.cli.run.placementflags import (
    add_placement_flags,
    placement_settings,
    warn_of_placement,
)
from sully.controllers.placement.settings import PlacementSettings, placement_options
from sully.domain.placement.options import OCM, PlacementOptions
from sully.machinery.compat import Compat

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


@pytest.mark.parametrize("compat", ["reference", "none"])
def test_who_sets_what_the_reference_does_not_know_is_told(
    compat: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = parser()
    flags.add_argument("--compat")
    warn_of_placement(flags.parse_args(["--compat", compat, TOLERATE, "0"]), "up")
    warn_of_placement(flags.parse_args(["--compat", compat, BUDGET, "0"]), "controllers")
    warn_of_placement(flags.parse_args(["--compat", compat]), "up")

    told = capsys.readouterr().err.splitlines()
    assert told == [
        f"sully {command}: {flag} has no effect with --compat reference"
        for command, flag in (("up", TOLERATE), ("controllers", BUDGET))
        if compat == "reference"
    ]


def test_the_reference_knows_no_settings() -> None:
    settings = PlacementSettings(toleration_seconds=300, leaves_per_minute=5)
    assert placement_options(settings, Compat.KUBERNETES) == OCM
    assert placement_options(settings, Compat.SULLY) == PlacementOptions(
        health_toleration_seconds=300, leaves_per_minute=5
    )
