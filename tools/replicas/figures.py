"""The results of a run: faults, counts, problems."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


@dataclass(slots=True)
class FaultResult:
    """A fault, and its effect."""

    name: str
    machine: str
    lasted: float
    acknowledged: int = 0
    """Requests that clients got answered while it lasted."""
    took_over: str = ""
    after: float | None = None
    """Seconds until the controllers of another replica did something."""


@dataclass(slots=True)
class Figures:
    """One run."""

    results: list[FaultResult] = field(default_factory=list)
    pods: int = 0
    bound: int = 0
    evicted: int = 0
    records: int = 0
    reads: int = 0
    writes: int = 0
    elsewhere: int = 0
    """How often a client had to use another replica."""
    changes: int = 0
    moves: int = 0
    """How often a watch continued at another replica."""
    terms: int = 0
    in_flight: int = 0
    """Writes of controllers that were on their way when the lease passed on."""
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def failovers(self) -> list[float]:
        """Return how long each took, the shortest first."""
        return sorted(result.after for result in self.results if result.after is not None)

    def summary(self) -> str:
        """Return the middle and the longest failover."""
        times = self.failovers or [0.0]
        return f"median {statistics.median(times):.1f} s, longest {times[-1]:.1f} s"
