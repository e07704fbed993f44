"""One browser for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from chromium import chromium, find_chromium
from sully.testing.patience import PATIENCE

WAIT = PATIENCE * 1000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run a browser. Not for the whole session: playwright has an event loop while it runs."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium: `make test` on Debian fetches one")
    expect.set_options(timeout=WAIT)
    with chromium(program) as running:
        yield running
