"""What no file of the project may mention, and what must have a reason."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.project import ROOT, files, short

# Written so that this file does not contain what it looks for.
FORBIDDEN = {
    "this checkout's place": re.compile(re.escape(str(ROOT)) + r"\b"),
    "a home folder": re.compile(r"(?<![\w.-])/(roo[t]|home/\w+)/"),
    "a folder beside the checkout": re.compile(r"\.\./share[d]\b"),
    "a package index": re.compile(r"index-ur[l]"),
    "unfinished work": re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|NotImplementedErro[r])\b"),
    "a switched-off test": re.compile(r"mark\.(ski[p]|xfai[l])|pytest\.xfai[l]|assert Tru[e]\b"),
}
# The one program that looks for recordings beside the checkout.
ALLOWED = {(".ci/run", "a folder beside the checkout")}
CORPUS = "corpus"
"""The folder of inputs for fuzzers, which are not text."""
TEXT_FILES = [
    path
    for path in files()
    if path.suffix not in (".png", ".gz") and path.name != "LICENSE" and CORPUS not in path.parts
]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_mentions(what: str) -> None:
    results = [
        f"{short(path)}:{number}: {line.strip()[:100]}"
        for path in TEXT_FILES
        if (short(path), what) not in ALLOWED
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]

    assert results == []


# The right words are those of Kubernetes: evicted, Pending, honored, recreated, deleted, requeued.
WORDS = {
    "a taint that is honored": re.compile(r"\bheed(s|ed|ing)?\b"),
    "an object that is recreated": re.compile(r"\bane[w]\b"),
    "a taint that prevents scheduling": re.compile(r"\b(keep(s|ing)?|kept) (\w+ )?(pods )?of[f]\b"),
    "a pod that is unschedulable": re.compile(r"\b(finds?|found|gets?) no plac[e]\b"),
    "a pod that is evicted": re.compile(r"\b[Ww]ho (leaves|left|must leav[e])\b"),
    "an object that is requeued": re.compile(r"\blooked at agai[n]\b"),
    "an indefinite time": re.compile(r"\bfor eve[r]\b"),
    "a simulated node": re.compile(r"\b[Hh]ollo[w]\b"),
    "a failure": re.compile(r"\bblunder(s|ed)?\b"),
    "who created an object": re.compile(r"\bwho says s[o]\b"),
}
WORDLESS = ("CHANGELOG.md", "tests/architecture/test_texts.py")
"""The changelog also has names that were replaced."""
NAMES = re.compile(
    r"^class _?(Chance|Door|Exhausted|Given|Kept|News|Outbox|Outlook|Sight|Spent|Spot|Visit|Wish)\b"
)


@pytest.mark.parametrize("what", WORDS)
def test_no_file_calls_it_otherwise(what: str) -> None:
    results = [
        f"{short(path)}:{number}: {line.strip()[:100]}"
        for path in TEXT_FILES
        if short(path) not in WORDLESS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if WORDS[what].search(line)
    ]

    assert results == []


def test_classes_have_names_of_kubernetes() -> None:
    results = [
        f"{short(path)}:{number}: {line}"
        for path in files(".py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NAMES.match(line)
    ]

    assert results == []


SILENCED = re.compile(r"#\s*(?:type:\s*ignore|noqa)\b")
MARKER = re.compile(r"#\s*type:\s*ignore(\[[\w, -]+\])?|#\s*noqa(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?")
WITHOUT_CODE = re.compile(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)")


def _silenced() -> Iterator[tuple[Path, int, str]]:
    for path in files(".py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = SILENCED.search(line)
            if match and path != Path(__file__):
                yield path, number, line[match.start() :]


def test_what_is_silenced_has_its_code_and_a_reason() -> None:
    bad = [
        f"{short(path)}:{number}: {comment}"
        for path, number, comment in _silenced()
        if WITHOUT_CODE.search(comment) or not _gives_a_reason(comment)
    ]

    assert bad == []


def _gives_a_reason(comment: str) -> bool:
    # One reason may stand for two markers on a line.
    return len(re.findall(r"[A-Za-z]{2,}", MARKER.sub("", comment))) >= 2


REASONS = {
    "x = 1  # type: ignore[misc]": False,
    "x = 1  # type: ignore[misc]  # the library has no types": True,
    "x = 1  # noqa: ARG001 - every command has the same shape": True,
    "x = 1  # noqa: A001, B002": False,
    "x = 1  # type: ignore[misc]  # noqa: F821 - imported late": True,
}


@pytest.mark.parametrize(("line", "want"), REASONS.items())
def test_a_reason_is_text_in_addition_to_the_markers(line: str, want: bool) -> None:
    assert _gives_a_reason(line[line.index("#") :]) == want
