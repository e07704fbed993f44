"""How fast pods may leave, as users say it."""

import argparse

import pytest

from sully.cli.run.evictionflags import add_eviction_flags, eviction_settings
from sully.evictor.settings import EvictionSettings

CASES = {
    "nothing": ([], EvictionSettings()),
    "no limits, in words": (
        ["--default-evictions-per-second=0", "--max-evictions-per-minute=0"],
        EvictionSettings(),
    ),
    "both": (
        ["--default-evictions-per-second", "10", "--max-evictions-per-minute", "300"],
        EvictionSettings(default_per_second=10, max_per_minute=300),
    ),
    "a bound": (["--max-staleness", "1m30s"], EvictionSettings(max_staleness=90)),
    "a close bound": (["--max-staleness", "1s"], EvictionSettings(max_staleness=1)),
    "no bound": (["--max-staleness", "0s"], EvictionSettings(max_staleness=None)),
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_eviction_flags(made)
    return made


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES.keys())
def test_settings(given: list[str], want: EvictionSettings) -> None:
    assert eviction_settings(parser().parse_args(given)) == want


@pytest.mark.parametrize("text", ["-1", "many", "1.5", ""])
def test_no_rate(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([f"--max-evictions-per-minute={text}"])

    assert f"must be a whole number, 0 or more, not {text!r}" in capsys.readouterr().err


def test_a_bound_that_no_list_can_keep(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--max-staleness", "999ms"])

    assert "must be at least 1s, or 0s for no bound" in capsys.readouterr().err
