"""How much one user, and all of them together, may have going on at once.

Requests that end soon are counted apart from watches, and writes apart from reads, so that none
starves the other. Whoever is over a limit hears 429 and when to come back; members of
system:masters are never refused, so that somebody can always look what is wrong.
"""

from collections import Counter
from dataclasses import dataclass

from sully.machinery.errors import TooManyRequests
from sully.server.authentication.groups import MASTERS
from sully.server.requests import User

RETRY_SECONDS = 1
READ, WRITE, WATCH = "read", "write", "watch"


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most of each kind; zero or less means no limit.

    Of reads and writes one user may have half, at least one.
    """

    reads: int = 400
    writes: int = 200
    watches: int = 1000  # of one user

    def total(self, kind: str) -> int:
        """Return how many all users together may have."""
        return {READ: self.reads, WRITE: self.writes}.get(kind, 0)

    def of_user(self, kind: str) -> int:
        """Return how many one user may have."""
        if kind == WATCH:
            return self.watches
        total = self.total(kind)
        return max(1, total // 2) if total > 0 else 0


class Slot:
    """A place among what is going on; given back once."""

    __slots__ = ("_key", "_limits")

    def __init__(self, limits: "Limits | None", key: tuple[str, str]) -> None:
        self._limits = limits
        self._key = key

    def release(self) -> None:
        """Let the next one in; a second call does nothing."""
        limits, self._limits = self._limits, None
        if limits is not None:
            limits.leave(self._key)


_EXEMPT = Slot(None, ("", ""))


class Limits:
    """Counts what is going on."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self._allowance = allowance or Allowance()
        self._users: Counter[tuple[str, str]] = Counter()
        self._totals: Counter[str] = Counter()

    def enter(self, user: User, kind: str) -> Slot:
        """Take a place; raises TooManyRequests."""
        if MASTERS in user.groups:
            return _EXEMPT
        key = (kind, user.name)
        total, own = self._allowance.total(kind), self._allowance.of_user(kind)
        if 0 < total <= self._totals[kind] or 0 < own <= self._users[key]:
            raise too_many()
        self._users[key] += 1
        self._totals[kind] += 1
        return Slot(self, key)

    def leave(self, key: tuple[str, str]) -> None:
        """Give a place back."""
        self._totals[key[0]] -= 1
        self._users[key] -= 1
        if not self._users[key]:
            # Else whoever makes up names would fill the memory.
            del self._users[key]


def too_many() -> TooManyRequests:
    """Ask a client to come back later."""
    return TooManyRequests(
        "Too many requests, please try again later.",
        details={"retryAfterSeconds": RETRY_SECONDS},
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
