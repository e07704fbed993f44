"""Which hollow clusters there are, as users say it."""

import argparse

import pytest

from sully.cli.run.simulated import (
    add_hollow_cluster_flags,
    check_hollow_clusters,
    hollow_clusters,
)
from sully.domain.simulated.clusters import Members


def _parse(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_hollow_cluster_flags(parser)
    return parser.parse_args(given)


CASES = {
    "nothing": ([], None),
    "some": (["--hollow-clusters", "20"], Members(20)),
    "none, so that others go": (["--hollow-clusters=0"], Members(0)),
    "quick ones": (["--hollow-clusters=2", "--hollow-cluster-lease-seconds=3"], Members(2, 3)),
}


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES)
def test_members(given: list[str], want: Members | None) -> None:
    options = _parse(*given)
    check_hollow_clusters(options)

    assert hollow_clusters(options) == want


@pytest.mark.parametrize("text", ["-1", "many", "10001", "1.5", "²"])
def test_no_number(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parse(f"--hollow-clusters={text}")

    assert "must be a number from 0 to 10000" in capsys.readouterr().err


def test_a_lease_needs_clusters() -> None:
    with pytest.raises(ValueError, match="needs --hollow-clusters"):
        check_hollow_clusters(_parse("--hollow-cluster-lease-seconds=3"))
