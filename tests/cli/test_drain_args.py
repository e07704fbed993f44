"""The flags of `cordon`, `drain` and `uncordon`, and which are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from click import BadParameter

from cli.commandlines import parsed
from sully.api.resource.eviction_rate import EvictionRate
from sully.cli.change.drain.args import drain_settings, undo_command
from sully.cli.command import CommandError
from sully.domain.drain.messages import DrainSettings

MINUTE = timedelta(minutes=1)
ONE = EvictionRate(1, burst=1)
SETTINGS = {
    "": DrainSettings(rate=ONE),
    "--rate 0": DrainSettings(),
    "--rate 10/m --burst 3": DrainSettings(rate=EvictionRate(10, MINUTE, 3)),
    "--rate 1/5m": DrainSettings(rate=EvictionRate(1, 5 * MINUTE, 1)),
    "--one-at-a-time": DrainSettings(rate=ONE, max_unavailable=1),
    "--max-unavailable 3 --wait-ready 1m": DrainSettings(
        rate=ONE, max_unavailable=3, wait_ready=MINUTE
    ),
    "--max-unavailable 25%": DrainSettings(rate=ONE, max_unavailable="25%"),
    "--one-at-a-time --max-unavailable 1": DrainSettings(rate=ONE, max_unavailable=1),
    "--wait-ready 0s": DrainSettings(rate=ONE, wait_ready=None),
    "--timeout 1m --then NoExecute": DrainSettings(rate=ONE, timeout=MINUTE, use_no_execute=True),
    "--when-idle": DrainSettings(rate=ONE, evicts=False),
}


@pytest.mark.parametrize(("flags", "want"), SETTINGS.items(), ids=lambda value: str(value)[:40])
def test_settings(flags: str, want: DrainSettings) -> None:
    assert drain_settings(parsed("drain", "node", "n1", *flags.split())) == want


REFUSED = {
    "--one-at-a-time --max-unavailable 2": "contradict each other",
    "--one-at-a-time --max-unavailable 10%": "contradict each other",
    "--max-unavailable 2 --wait-ready 0s": "cannot be used with --wait-ready 0s",
    "--then NoExecute": "--then NoExecute requires --timeout",
    "--when-idle --one-at-a-time": "--when-idle evicts no pods",
}


@pytest.mark.parametrize(("flags", "why"), REFUSED.items(), ids=REFUSED)
def test_flags_that_contradict_each_other(flags: str, why: str) -> None:
    with pytest.raises(CommandError, match=why) as refused:
        drain_settings(parsed("drain", "node", "n1", *flags.split()))

    assert refused.value.code == 2


@pytest.mark.parametrize("value", ["0", "0%", "101%", "%", "25 %", "-1", "2.5%", "half", ""])
def test_numbers_that_are_none(value: str) -> None:
    with pytest.raises(BadParameter, match="a whole number, 1 or more, or a percentage"):
        parsed("drain", "node", "n1", f"--max-unavailable={value}")


def test_undo_selects_the_same_devices() -> None:
    arguments = ("device", "a/*", "--class", "x", "--cel", "device.driver == 'd'", "-l", "zone=a")

    options = parsed("drain", *arguments, "--rate", "2", "--uuid", "GPU-1", "--yes")

    assert undo_command(options) == (
        "sully uncordon device 'a/*' --class x --cel 'device.driver == '\"'\"'d'\"'\"''"
        " -l zone=a --uuid GPU-1"
    )
