"""The pages of the documentation site: their links, and that every page has its place."""

from __future__ import annotations

import pytest

from architecture.project import ROOT
from release.pages import OUTSIDE, navigation, rewrite, site_path

LINKS = {
    "another page": ("docs/guides/a.md", "[b](b.md)", "[b](b.md)"),
    "the home page": ("docs/guides/a.md", "[x](../../README.md)", "[x](../index.md)"),
    "from the home page": ("README.md", "[x](docs/guides/a.md#y)", "[x](guides/a.md#y)"),
    "source code": ("docs/architecture.md", "[x.py](../src/x.py), y", "x.py, y"),
    "a folder": ("README.md", "[d](docs/adr)", "d"),
    "a picture": ("README.md", "![p](docs/pictures/p.svg)", "![p](pictures/p.svg)"),
    "another server": (
        "README.md",
        "[w](https://example.com/a.md)",
        "[w](https://example.com/a.md)",
    ),
    "the same page": ("README.md", "[w](#there)", "[w](#there)"),
    "in code": ("README.md", "`[x](src/x.py)`", "`[x](src/x.py)`"),
    "words in code": ("README.md", "[`x`](src/x.py)", "`x`"),
}


@pytest.mark.parametrize(("page", "text", "want"), LINKS.values(), ids=LINKS)
def test_links_are_right_on_the_site(page: str, text: str, want: str) -> None:
    assert rewrite(text, page) == want


def test_every_page_is_in_the_navigation_once() -> None:
    below = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    pages = [site_path(path) or "" for path in (*OUTSIDE, *below)]
    listed = [page for section in navigation(pages) for names in section.values() for page in names]

    assert sorted(listed) == sorted(pages)
