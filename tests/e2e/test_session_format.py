"""The sessions are only as good as what compares them."""

import pytest

from e2e.session import Step, names, settle, steps

TEXT = """\
# A comment.
$ cat <<EOF
> one
> EOF
one
{-1.23} $ old command
old output
{1.24+} $ new command
new output
$ both
{-1.23} as it was
{1.24+} as it is

[exit 1]
"""
NEW = [
    Step("cat <<EOF\none\nEOF", ["one"]),
    Step("new command", ["new output"]),
    Step("both", ["as it is", "", "[exit 1]"]),
]
OLD = [NEW[0], Step("old command", ["old output"]), Step("both", ["as it was", "", "[exit 1]"])]


@pytest.mark.parametrize(("minor", "want"), [(20, OLD), (23, OLD), (24, NEW), (37, NEW)])
def test_a_session_is_read_for_one_version(minor: int, want: list[Step]) -> None:
    assert list(steps(TEXT, minor)) == want


FITS = {
    "the same": ("a b\n", ["a b"], True),
    "another word": ("a c\n", ["a b"], False),
    "one line more": ("a b\nc\n", ["a b"], False),
    "one line less": ("", ["a b"], False),
    "anything within a line": ("pod/made-x7 created\n", ["pod/made-... created"], True),
    "not anything across lines": ("pod/made-\n created\n", ["pod/made-... created"], False),
}


@pytest.mark.parametrize("case", FITS)
def test_whole_outputs_are_compared(case: str) -> None:
    printed, expected, fits = FITS[case]

    assert (Step("x", expected).difference(printed) == "") == fits


SETTLED = {
    "ages keep columns": ("a   9s      b\na   10s     b", "a   AGE     b\na   AGE     b"),
    "an age at the end": ("a   0s\n", "a   AGE\n"),
    "seconds that are not an age": ("for 300s, timeout=1s", "for 300s, timeout=1s"),
    "a name of a namespace": ("in ns-0007 now", "in test-ns now"),
    "ids and times": (
        "1442a2f9-ecd2-44cb-896c-4e21b7bc6b34 2026-11-15T04:35:53Z",
        "UID TIME",
    ),
    "versions": ('resourceVersion: "12"\n', "resourceVersion: VERSION\n"),
    "spaces at the end of lines": ("a  \nb", "a\nb"),
}


@pytest.mark.parametrize("case", SETTLED)
def test_what_differs_between_runs_is_settled(case: str) -> None:
    text, want = SETTLED[case]

    assert settle(text, "ns-0007") == want


def test_there_are_sessions() -> None:
    assert len(names()) > 15
