"""How fast pods are evicted: a number per period, after a burst.

A taint has `evictionsPerSecond`. Slower rates and the burst are annotations of its rule, which
servers keep that know neither: `sully.dev/eviction-rate: 1/5m`, `sully.dev/eviction-burst: "1"`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

BURST: Final = 10
"""How many pods may be evicted immediately after none were for a while, if nothing else is set."""
RATE_ANNOTATION: Final = "sully.dev/eviction-rate"
BURST_ANNOTATION: Final = "sully.dev/eviction-burst"
MAX_COUNT: Final = 1000
_SECOND: Final = timedelta(seconds=1)
_RATE = re.compile(r"([0-9]{1,4})(?:/([0-9]{0,5})([smh]))?")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_COUNT = re.compile(r"[0-9]{1,4}")


class EvictionRate(msgspec.Struct, frozen=True):
    """A number of evictions per period, and how many may follow each other immediately."""

    count: int
    period: timedelta = _SECOND
    burst: int = BURST

    @property
    def interval(self) -> timedelta:
        """Return the time between two evictions."""
        return self.period / self.count

    @property
    def per_second(self) -> float:
        """Return the evictions per second."""
        return self.count / self.period.total_seconds()

    def __str__(self) -> str:
        """Return it as the annotation has it: 2/s, 1/5m."""
        seconds = int(self.period.total_seconds())
        for unit, size in reversed(_UNITS.items()):
            if seconds % size == 0:
                number = seconds // size
                return f"{self.count}/{'' if number == 1 else number}{unit}"
        return f"{self.count}/{seconds}s"


def parse_rate(text: str) -> EvictionRate:
    """Parse 2, 10/m or 1/5m; the burst is what one period has, at most `BURST`.

    Raises ValueError.
    """
    match = _RATE.fullmatch(text)
    count = int(match[1]) if match else 0
    number = int(match[2]) if match and match[2] else 1
    if match is None or not 0 < count <= MAX_COUNT or not number:
        raise ValueError(f'invalid rate "{text}" (for example 2, 10/m, 1/5m)')
    period = timedelta(seconds=number * _UNITS[match[3] or "s"])
    return EvictionRate(count, period, min(count, BURST))


def parse_burst(text: str) -> int:
    """Parse a burst; raise ValueError."""
    if not _COUNT.fullmatch(text) or not 0 < int(text) <= MAX_COUNT:
        raise ValueError(f'invalid burst "{text}" (1 to {MAX_COUNT})')
    return int(text)


def rate_of(per_second: int | None, annotations: Mapping[str, str]) -> EvictionRate | None:
    """Return the rate of a rule: the slower one of field and annotation; None means no limit.

    An annotation that is invalid does not count: another server may have stored it.
    """
    field = EvictionRate(per_second) if per_second is not None else None
    rates = [field, _annotated(annotations)] if annotations else [field]
    slowest = min(filter(None, rates), key=lambda rate: rate.per_second, default=None)
    burst = annotations.get(BURST_ANNOTATION)
    if slowest is None or burst is None:
        return slowest
    try:
        return replace(slowest, burst=parse_burst(burst))
    except ValueError:
        return slowest


def _annotated(annotations: Mapping[str, str]) -> EvictionRate | None:
    try:
        return parse_rate(annotations.get(RATE_ANNOTATION, ""))
    except ValueError:
        return None
