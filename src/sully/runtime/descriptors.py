"""How many files and connections this process may have open at the same time."""

from __future__ import annotations

import contextlib

MOST = 65_536
"""Beyond this a process has other limits."""
_DEFAULT = 1024


def limit() -> int:
    """Return the limit of this process."""
    try:
        import resource
    except ImportError:  # not on every system
        return _DEFAULT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)


def raise_limit(most: int = MOST) -> int:
    """Raise the soft limit to the hard one, within bounds; return what it is then.

    Shells give programs a soft limit of 1024, for select(2), which is not used here.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        target = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft != resource.RLIM_INFINITY and soft < target:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return limit()
