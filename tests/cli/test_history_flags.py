"""The flag for the retention of records."""

from datetime import timedelta

import pytest

from cli.commandlines import parsed, refusal
from sully.cli.run.controller_options import history_retention

CASES = {
    "nothing": ([], timedelta(days=30)),
    "days": (["--history-retention", "90d"], timedelta(days=90)),
    "mixed": (["--history-retention=1h30m"], timedelta(minutes=90)),
    "more than there will be": (["--history-retention=9999999d"], timedelta(days=36500)),
}


@pytest.mark.parametrize(("flags", "want"), CASES.values(), ids=CASES.keys())
def test_kept(flags: list[str], want: timedelta) -> None:
    assert history_retention(parsed("up", *flags)) == want


def test_no_duration() -> None:
    want = 'invalid duration "long" (for example 15s, 1m30s)'

    assert refusal(["up", "--history-retention=long"]) == want
