"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

from sully.testing.patience import PATIENCE


def until(done: Callable[[], object], what: str) -> None:
    """Look again and again; what does not come about is a failure."""
    give_up = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < give_up, f"not within {PATIENCE} s: {what}"
        time.sleep(0.02)
