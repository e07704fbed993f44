"""Patterns for devices, and selectors of criteria."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sully.cli.command import CommandError
from sully.cli.output.formatting import (
    EFFECT_STYLES,
    age,
    eviction_text,
    expiry_text,
    origin_text,
    toleration_text,
    until,
)
from sully.cli.selection.selectors import Pattern, parse_pattern
from sully.domain.devices.taints import (
    BLOCKING_EFFECTS,
    EFFECTS,
    EVICTING_EFFECTS,
    Origin,
    strongest_effect,
)
from sully.domain.tolerations import taint_text
from sully.machinery.formats.plurals import number_of
from sully.testing.builders import equal, exists, taint
from sully.testing.clock import NOON

PARSED = {
    "*": Pattern("*", "*", "*"),
    "gpu.example.com": Pattern("gpu.example.com"),
    "gpu.example.com/node-1": Pattern("gpu.example.com", "node-1"),
    "*/*/gpu-?": Pattern("*", "*", "gpu-?"),
    "d/a/b/c": Pattern("d", "a/b", "c"),
}


@pytest.mark.parametrize(("text", "want"), PARSED.items(), ids=PARSED)
def test_parse(text: str, want: Pattern) -> None:
    assert parse_pattern(text) == want


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a//b", "a/b/"])
def test_what_is_not_a_pattern(text: str) -> None:
    with pytest.raises(CommandError, match="DRIVER/POOL/DEVICE") as raised:
        parse_pattern(text)

    assert raised.value.code == 2


MATCHES = {
    "any": ("*", True),
    "the names": ("gpu.example.com/a/b/gpu-0", True),
    "another driver": ("nic.example.com", False),
    "a pool with a slash": ("*/a/b/*", True),
    "half of its name": ("*/a/*", False),
    "a glob": ("gpu.*/a*/gpu-[0-3]", True),
    "a glob that does not": ("*/*/gpu-[1-3]", False),
    "case counts": ("*/*/GPU-0", False),
}


@pytest.mark.parametrize(("text", "want"), MATCHES.values(), ids=MATCHES)
def test_matches(text: str, want: bool) -> None:
    pattern = parse_pattern(text)

    assert pattern.matches("gpu.example.com", "a/b", "gpu-0") is want
    if want:
        assert pattern.matches_pool("gpu.example.com", "a/b")


MEETINGS = {
    "a selector of everything": ((None, None, None), True),
    "of its pool": ((None, "node-1", None), True),
    "of another pool": ((None, "node-2", None), False),
    "of the device": (("d", "node-1", "gpu-0"), True),
    "of another device": ((None, None, "gpu-1"), False),
}


@pytest.mark.parametrize(("names", "want"), MEETINGS.values(), ids=MEETINGS)
def test_overlaps(names: tuple[str | None, str | None, str | None], want: bool) -> None:
    assert parse_pattern("*/node-1/gpu-0").overlaps(*names) is want


WORDS = {
    "a taint": (taint_text(taint(key="k")), "k:NoExecute"),
    "with a value": (taint_text(taint("NoSchedule", key="k", value="v")), "k=v:NoSchedule"),
    "tolerates a key": (toleration_text(exists(key="k", seconds=60)), "k:NoExecute for 60s"),
    "a value": (toleration_text(equal("v", key="k", effect="")), "k=v"),
    "everything": (toleration_text(exists(key="", effect="")), "*"),
    "for no time": (toleration_text(exists(key="k", seconds=0)), "k:NoExecute for 0s"),
    "a rule": (origin_text(Origin("DeviceTaintRule", "r")), "rule/r"),
    "a patch": (origin_text(Origin("ResourceSlicePatch", "p")), "patch/p"),
    "a driver": (origin_text(Origin("ResourceSlice", "s")), "driver"),
    "its slice": (origin_text(Origin("ResourceSlice", "s"), wide=True), "slice/s"),
    "long ago": (age(NOON - timedelta(minutes=3), NOON), "3m"),
    "in the future": (age(NOON + timedelta(minutes=3), NOON), "0s"),
    "never": (age(None, NOON), ""),
    "soon": (until(NOON + timedelta(seconds=90), NOON), "in 90s"),
    "due": (until(NOON - timedelta(seconds=90), NOON), "now"),
    "evicted soon": (eviction_text(NOON + timedelta(seconds=90), NOON), "evicted in 90s"),
    "evicted now": (eviction_text(NOON - timedelta(seconds=59), NOON), "evicted now"),
    "overdue": (eviction_text(NOON - timedelta(hours=2), NOON), "eviction overdue 120m"),
    "expires soon": (expiry_text(NOON + timedelta(seconds=90), NOON), "expires in 90s"),
    "not removed": (expiry_text(NOON - timedelta(days=2), NOON), "expired 2d ago"),
    "one": (number_of(1, "pod"), "1 pod"),
    "none": (number_of(0, "pod"), "0 pods"),
}


@pytest.mark.parametrize(("text", "want"), WORDS.values(), ids=WORDS)
def test_words(text: str, want: str) -> None:
    assert text == want


@pytest.mark.parametrize("effect", EFFECTS)
def test_the_color_of_an_effect_is_what_it_does(effect: str) -> None:
    blocking = "yellow" if effect in BLOCKING_EFFECTS else ""

    assert EFFECT_STYLES[effect] == ("red" if effect in EVICTING_EFFECTS else blocking)


def test_colors_are_listed_from_the_strongest_effect() -> None:
    left = list(EFFECT_STYLES)
    while left:
        assert strongest_effect(left) == left.pop(0)
