"""How long to wait before a retry: longer with each failure, up to a bound.

The work queue uses it per key, the client per connection. It keeps no state: the caller counts
the failures.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

SHARED = random.Random()
"""The jitter of all callers that pass no other source; a simulation seeds it."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delays with jitter.

    The jitter only adds, so the first delay is never shorter than `base`, and it spreads clients
    that failed together, so that they do not retry together.
    """

    base: float = 0.005
    cap: float = 60.0
    factor: float = 2.0
    jitter: float = 0.1
    """The largest part of a delay that is added to it at random."""
    rng: random.Random = field(default_factory=lambda: SHARED, repr=False, compare=False)

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after this many failures in a row; none without one."""
        if failures <= 0:
            return 0.0
        # Beyond this the cap holds anyway, and the power would overflow a float.
        limit = math.log(max(self.cap / self.base, 1.0), self.factor)
        plain = self.base * math.pow(self.factor, min(failures - 1, limit))
        return min(plain, self.cap) * (1.0 + self.jitter * self.rng.random())
