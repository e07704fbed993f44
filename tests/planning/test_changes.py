"""When a plan start_time: a server stamps taints a little after we looked."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from sully.planning.dryrun.changes import Put, Remove, start_time
from sully.testing.builders import device, rule, select, slice_, taint
from sully.testing.clock import NOON
from sully.views.kinds import RULES, SLICES

SOON, LATER = NOON + timedelta(seconds=2), NOON + timedelta(hours=1)


def ruled(at: datetime | None) -> Put:
    return Put(RULES, rule("r", select(), taint(time=at)))


def published(at: datetime | None) -> Put:
    return Put(SLICES, slice_("s", device("gpu-0", taint(time=at))))


CASES = {
    "nothing is stamped": ([ruled(None)], NOON),
    "a rule": ([ruled(SOON)], SOON),
    "a device in a slice": ([published(SOON)], SOON),
    "the last of several": ([ruled(NOON), published(SOON)], SOON),
    "a taint of long ago": ([ruled(NOON - timedelta(days=1))], NOON),
    "one that is meant to begin later": ([ruled(LATER)], NOON),
    "what goes": ([Remove(RULES, ruled(SOON).key)], NOON),
}


@pytest.mark.parametrize(("changes", "want"), CASES.values(), ids=CASES)
def test_begins(changes: list[Put | Remove], want: datetime) -> None:
    assert start_time(changes, NOON) == want
