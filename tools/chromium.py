"""Chromium for the tests of the dashboard, and for its pictures and measurements."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FETCHED = ROOT / ".cache/chromium/chromium"


def find_chromium() -> str | None:
    """Return a Chromium: one on the PATH, or the one that `make test` fetches."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    return found or (str(FETCHED) if FETCHED.exists() else None)


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """Run a browser until the block ends.

    Its own sandbox needs rights that a container often lacks; it shows only our pages here.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()
