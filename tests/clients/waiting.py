"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

SECONDS = 120.0


def until(done: Callable[[], object], what: str) -> None:
    """Look again and again; what does not come about is a failure."""
    give_up = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < give_up, f"not within {SECONDS:.0f} s: {what}"
        time.sleep(0.02)
