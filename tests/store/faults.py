"""Ways to make a disk fail."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = bytes(1 << 20)
"""A value that a full disk has no room for."""


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process grow beyond what a few small writes need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
