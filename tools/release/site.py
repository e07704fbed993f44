"""Builds the documentation site: warnings are errors, and browsers load nothing from elsewhere."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path

import yaml

from release.pages import OUTSIDE, navigation, rewrite, site_path
from release.project import ROOT, ReleaseError, run

_BUILD = ROOT / "build/docs"
SITE = ROOT / "build/site"
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


def docs() -> None:
    """Build the site into `build/site`."""
    shutil.rmtree(_BUILD, ignore_errors=True)
    pages = [place for path in _sources() if (place := _copy(path)).endswith(".md")]
    config = {
        "INHERIT": "../../mkdocs.yml",
        "docs_dir": "pages",
        "site_dir": str(SITE),
        "nav": navigation(pages),
    }
    (_BUILD / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False))
    flags = ("--strict", "--config-file", _BUILD / "mkdocs.yml")
    run("mkdocs", "build", *flags, env={"NO_MKDOCS_2_WARNING": "1"})
    if found := [text for path in sorted(SITE.rglob("*.html")) for text in foreign(path)]:
        raise ReleaseError("loaded from another server:\n" + "\n".join(found))
    print(f"build/site: {len(list(SITE.rglob('*.html')))} pages")


def _sources() -> list[str]:
    below = (path for path in (ROOT / "docs").rglob("*") if path.is_file())
    outside = [name for name in OUTSIDE if (ROOT / name).exists()]
    return [*outside, *(path.relative_to(ROOT).as_posix() for path in below)]


def _copy(path: str) -> str:
    place = site_path(path)
    if place is None:
        raise ReleaseError(f"{path} has no place on the site")
    target = _BUILD / "pages" / place
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".md":
        target.write_text(rewrite((ROOT / path).read_text(), path))
    else:
        shutil.copy(ROOT / path, target)
    return place


class _Loads(HTMLParser):
    """Collects what a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of what is loaded."""
        values = dict(attrs)
        if tag == "link" and values.get("rel") not in (
            "stylesheet",
            "icon",
            "preload",
            "preconnect",
        ):
            return
        self.found.append(values.get(_LOADED.get(tag, "")) or "")


def foreign(path: Path) -> list[str]:
    """Return what a page loads from other servers."""
    parser = _Loads()
    parser.feed(path.read_text())
    return [
        f"{path.name}: {address}"
        for address in parser.found
        if address.startswith(("http:", "https:", "//"))
    ]
