"""Every link inside the project leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.project import ROOT, files, short

PAGES = list(files(".md"))
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FILE = re.compile(r"\[([\w./-]+\.(?:py|js|css|fields))\]\(([^)\s]+)\)")
"""A link whose text is the name of a source file."""
_CODE = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def links(text: str) -> Iterator[str]:
    """Go through the relative links of a page."""
    for target in _LINK.findall(_CODE.sub("", _FENCE.sub("", text))):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(text: str) -> set[str]:
    """Return the names under which the headings of a page can be linked to."""
    headings = (heading.lower().replace("`", "") for heading in _HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in links(page.read_text()) if not _leads(page, target)] == []


def _leads(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    result = (page.parent / name).resolve() if name else page
    if not result.exists() or not result.is_relative_to(ROOT):
        return False
    return not anchor or anchor in anchors(result.read_text())


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_links_name_the_file_they_lead_to(page: Path) -> None:
    """They stay valid when a file is moved, and are renamed with it."""
    wrong = [
        (name, target)
        for name, target in _FILE.findall(page.read_text())
        if not f"/{target}".endswith(f"/{name}")
    ]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_a_name_of_a_file_stands_for_one_file(page: Path) -> None:
    """Two files of one name are linked with their folders."""
    targets: dict[str, set[str]] = {}
    for name, target in _FILE.findall(page.read_text()):
        targets.setdefault(name, set()).add(target)

    assert {name for name, files in targets.items() if len(files) > 1} == set()


def test_the_pages_link_to_each_other() -> None:
    assert len([target for page in PAGES for target in links(page.read_text())]) > 20
