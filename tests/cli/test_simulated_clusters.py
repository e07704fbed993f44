"""The flags for simulated clusters."""

import pytest

from cli.commandlines import parsed, refusal
from sully.cli.run.up.simulated import check_simulation, simulated_clusters
from sully.domain.simulated.clusters import Members

CASES = {
    "nothing": ([], None),
    "some": (["--simulated-clusters", "20"], Members(20)),
    "none, so that others go": (["--simulated-clusters=0"], Members(0)),
    "quick ones": (
        ["--simulated-clusters=2", "--simulated-cluster-lease-seconds=3"],
        Members(2, 3),
    ),
}


@pytest.mark.parametrize(("flags", "want"), CASES.values(), ids=CASES)
def test_members(flags: list[str], want: Members | None) -> None:
    options = parsed("up", *flags)
    check_simulation(options)

    assert simulated_clusters(options) == want


@pytest.mark.parametrize("text", ["-1", "many", "10001", "1.5", "²"])
def test_no_number(text: str) -> None:
    want = f'invalid number "{text}" (a whole number, 0 to 10000)'

    assert refusal(["up", f"--simulated-clusters={text}"]) == want


def test_a_lease_needs_clusters() -> None:
    with pytest.raises(ValueError, match="requires --simulated-clusters"):
        check_simulation(parsed("up", "--simulated-cluster-lease-seconds=3"))
