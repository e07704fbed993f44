"""The flags for the rate of evictions."""

import pytest

from cli.commandlines import parsed, refusal
from sully.cli.run.controller_options import eviction_settings
from sully.evictor.settings import EvictionSettings

CASES = {
    "nothing": ([], EvictionSettings(default_per_second=10)),
    "no limits, in words": (
        ["--default-evictions-per-second=0", "--max-evictions-per-minute=0"],
        EvictionSettings(),
    ),
    "both": (
        ["--default-evictions-per-second", "10", "--max-evictions-per-minute", "300"],
        EvictionSettings(default_per_second=10, max_per_minute=300),
    ),
    "a bound": (["--max-staleness", "1m30s"], EvictionSettings(default_per_second=10)),
    "a close bound": (
        ["--max-staleness", "1s"],
        EvictionSettings(default_per_second=10, max_staleness=1),
    ),
    "no bound": (
        ["--max-staleness", "0s"],
        EvictionSettings(default_per_second=10, max_staleness=None),
    ),
}


@pytest.mark.parametrize(("flags", "want"), CASES.values(), ids=CASES.keys())
def test_settings(flags: list[str], want: EvictionSettings) -> None:
    assert eviction_settings(parsed("up", *flags)) == want


@pytest.mark.parametrize("text", ["-1", "many", "1.5", ""])
def test_no_rate(text: str) -> None:
    want = f'invalid number "{text}" (a whole number, 0 or more)'

    assert refusal(["up", f"--max-evictions-per-minute={text}"]) == want


def test_a_bound_that_no_list_can_keep() -> None:
    want = 'invalid duration "999ms" (1s or more, or 0s for no limit)'

    assert refusal(["up", "--max-staleness", "999ms"]) == want
