"""How long history is kept, as users say it."""

import argparse
from datetime import timedelta

import pytest

from sully.cli.run.controller_options import add_history_flags, history_kept

CASES = {
    "nothing": ([], timedelta(days=30)),
    "days": (["--history-retention", "90d"], timedelta(days=90)),
    "mixed": (["--history-retention=1h30m"], timedelta(minutes=90)),
    "more than there will be": (["--history-retention=9999999d"], timedelta(days=36500)),
}


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES.keys())
def test_kept(given: list[str], want: timedelta) -> None:
    parser = argparse.ArgumentParser()
    add_history_flags(parser)

    assert history_kept(parser.parse_args(given)) == want


def test_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_history_flags(parser)

    with pytest.raises(SystemExit):
        parser.parse_args(["--history-retention=long"])

    assert "'long' is no time" in capsys.readouterr().err
