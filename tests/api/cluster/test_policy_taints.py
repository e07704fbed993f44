"""Which taints are a policy's own, as an annotation keeps it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.cluster.taints.policy_taints import read_taint_ids, write_taint_ids

names = st.from_regex(r"[a-z]([a-z.-]{0,8}[a-z])?(/[a-z]{1,4})?", fullmatch=True)
values = st.from_regex(r"[A-Za-z0-9]?([A-Za-z0-9._-]{0,6}[A-Za-z0-9])?", fullmatch=True)
effects = st.sampled_from(["NoSelect", "PreferNoSelect", "NoSelectIfNew"])


@given(st.frozensets(st.tuples(names, values, effects)))
def test_what_is_written_is_read(ids: frozenset[tuple[str, str, str]]) -> None:
    assert read_taint_ids(write_taint_ids(ids)) == ids


CASES = {
    "nothing": ("", frozenset()),
    "no effect": ("key", frozenset()),
    "no key": (":NoSelect", frozenset()),
    "commas": (",,a:NoSelect,", frozenset({("a", "", "NoSelect")})),
}


@pytest.mark.parametrize(("text", "want"), CASES.values(), ids=CASES)
def test_by_hand(text: str, want: frozenset[tuple[str, str, str]]) -> None:
    assert read_taint_ids(text) == want
