"""The flags for when clusters are removed from placements."""

import pytest

from cli.commandlines import parsed, refusal
from sully.cli.run.controller_options import placement_settings, warn_of_placement
from sully.controllers.placement.settings import PlacementSettings, placement_options
from sully.domain.placement.options import OCM, PlacementOptions
from sully.machinery.compat import Compat

TOLERATE, BUDGET = "--default-cluster-toleration-seconds", "--cluster-removal-budget-per-minute"
CASES = {
    "nothing": ([], PlacementSettings()),
    "both": (
        [TOLERATE, "300", BUDGET, "5"],
        PlacementSettings(toleration_seconds=300, removals_per_minute=5),
    ),
    "no cluster is removed": ([f"{BUDGET}=0"], PlacementSettings(removals_per_minute=0)),
}


@pytest.mark.parametrize(("flags", "want"), CASES.values(), ids=CASES.keys())
def test_settings(flags: list[str], want: PlacementSettings) -> None:
    assert placement_settings(parsed("up", *flags)) == want


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "", "1234567890"])
@pytest.mark.parametrize("flag", [TOLERATE, BUDGET])
def test_no_number(flag: str, text: str) -> None:
    want = f'invalid number "{text}" (a whole number, 0 to 999999999)'

    assert refusal(["up", f"{flag}={text}"]) == want


@pytest.mark.parametrize("compat", ["reference", "sully"])
def test_who_sets_what_kubernetes_does_not_know_is_reported(
    compat: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_placement(parsed("up", "--compat", compat, TOLERATE, "0"))
    warn_of_placement(parsed("controllers", "--compat", compat, BUDGET, "0"))
    warn_of_placement(parsed("up", "--compat", compat))

    reported = capsys.readouterr().err.splitlines()
    assert reported == [
        f"warning: {flag} has no effect with --compat reference"
        for flag in (TOLERATE, BUDGET)
        if compat == "reference"
    ]


def test_kubernetes_knows_no_settings() -> None:
    settings = PlacementSettings(toleration_seconds=300, removals_per_minute=5)
    assert placement_options(settings, Compat.KUBERNETES) == OCM
    assert placement_options(settings, Compat.SULLY) == PlacementOptions(
        health_toleration_seconds=300, removals_per_minute=5
    )
