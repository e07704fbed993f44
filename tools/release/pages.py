"""The pages of the documentation site: where each one goes, and what becomes of its links.

The pages are those that one reads in the repository. On the site README is the home page, and a
link to a file that is not a page (source code, manifests) keeps only its text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "changes/README.md": "contributing/fragments.md",
}
"""Pages that are not under docs/, and their names on the site."""
SECTIONS: dict[str, tuple[str, ...]] = {
    "Home": ("index.md",),
    "Install": ("install.md", "guides/helm.md"),
    "Tutorials": ("guides/kubernetes.md", "guides/simulated-nodes.md", "guides/driver-ci.md"),
    "Guides": ("guides/",),
    "Concepts": ("guides/eviction.md", "guides/scheduling.md", "guides/clusters.md"),
    "Reference": ("reference/", "compatibility.md", "promises.md", "performance.md"),
    "Operations": (
        "guides/controllers.md",
        "upgrade.md",
        "runbooks.md",
        "guides/backup.md",
        "guides/etcd.md",
        "security.md",
        "security-policy.md",
        "changelog.md",
    ),
    "Contributing": (
        "contributing.md",
        "contributing/",
        "architecture.md",
        "measurements.md",
        "simulation.md",
        "faults.md",
        "releases.md",
        "adr/",
    ),
}
"""The sections of the site. A folder stands for its pages that no section names."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_MASK = re.compile("\0(\\d+)\0")


def site_path(path: str) -> str | None:
    """Return where a file of the project is on the site, or None if it is not."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def rewrite(text: str, page: str) -> str:
    """Return a page with links that are right on the site."""
    code: list[str] = []

    def mask(found: re.Match[str]) -> str:
        code.append(found[0])
        return f"\0{len(code) - 1}\0"

    linked = _LINK.sub(lambda found: _link(found, page), _CODE.sub(mask, text))
    return _MASK.sub(lambda found: code[int(found[1])], linked)


def _link(found: re.Match[str], page: str) -> str:
    mark, words, target = found.groups()
    if re.match(r"[a-z]+:|#", target):
        return found[0]
    name, _, anchor = target.partition("#")
    path = os.path.normpath(PurePosixPath(page).parent / name)
    place, here = site_path(path), site_path(page)
    if place is None or here is None or not PurePosixPath(place).suffix:
        return words
    relative = os.path.relpath(place, PurePosixPath(here).parent)
    return f"{mark}[{words}]({relative}{'#' if anchor else ''}{anchor})"


def navigation(pages: Iterable[str]) -> list[dict[str, Any]]:
    """Return the sections with their pages, in order."""
    left = sorted(pages)
    named = {page for patterns in SECTIONS.values() for page in patterns}
    return [
        {title: [page for pattern in patterns for page in _pages(pattern, left, named)]}
        for title, patterns in SECTIONS.items()
    ]


def _pages(pattern: str, pages: list[str], named: set[str]) -> list[str]:
    if not pattern.endswith("/"):
        return [pattern]
    return [page for page in pages if page.startswith(pattern) and page not in named]
