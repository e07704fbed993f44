"""Semantic versions: reading, order and the lenient form."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sully.machinery.formats.semver import SemverError, parse_semver

# In the order of the specification.
ORDERED = (
    "0.0.1",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0-0",
    "2.0.0",
)


@pytest.mark.parametrize(("low", "high"), list(pairwise(ORDERED)))
def test_order(low: str, high: str) -> None:
    first, second = parse_semver(low), parse_semver(high)

    assert first < second
    assert second > first
    assert (first.compare(second), second.compare(first)) == (-1, 1)


def test_build_metadata_plays_no_part() -> None:
    first, second = parse_semver("1.0.0+a"), parse_semver("1.0.0+b")

    assert first == second
    assert hash(first) == hash(second)
    assert str(first) == "1.0.0+a"


REFUSED = {
    "nothing": ("", "Version string empty"),
    "two numbers": ("1.0", "No Major.Minor.Patch elements found"),
    "a leading v": ("v1.0.0", 'Invalid character(s) found in major number "v1"'),
    "a leading zero": ("01.0.0", 'Major number must not contain leading zeroes "01"'),
    "a leading zero in the patch": ("1.0.00", 'Patch number must not contain leading zeroes "00"'),
    "four numbers": ("1.0.0.0", 'Invalid character(s) found in patch number "0.0"'),
    "a zero before a prerelease number": (
        "1.0.0-01",
        'Numeric PreRelease version must not contain leading zeroes "01"',
    ),
    "a number beyond 64 bits": (
        "99999999999999999999.0.0",
        'strconv.ParseUint: parsing "99999999999999999999": value out of range',
    ),
}


@pytest.mark.parametrize(("text", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text: str, want: str) -> None:
    with pytest.raises(SemverError) as caught:
        parse_semver(text)

    assert str(caught.value) == want


NORMALIZED = {
    "a leading v": ("v1.0.0", "1.0.0"),
    "one number": ("1", "1.0.0"),
    "two numbers": ("1.2", "1.2.0"),
    "leading zeros": ("01.02.03", "1.2.3"),
    "all zeros": ("00.00.00", "0.0.0"),
    "a prerelease": ("v01.2.03-rc.1", "1.2.3-rc.1"),
    "strict already": ("1.2.3+b", "1.2.3+b"),
}


@pytest.mark.parametrize(("text", "want"), NORMALIZED.values(), ids=NORMALIZED.keys())
def test_normalized(text: str, want: str) -> None:
    assert str(parse_semver(text, normalize=True)) == want


def test_a_short_version_has_no_prerelease() -> None:
    with pytest.raises(SemverError, match="short version cannot contain"):
        parse_semver("1.0-rc1", normalize=True)
