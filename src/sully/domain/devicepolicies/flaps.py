"""When something that recovers and fails again and again is flapping: devices and clusters."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sully.domain.devicepolicies.settings import Flaps

FAULT_TIMES_MAX: Final = 32


def count_faults(
    flaps: Flaps | None, times: Iterable[datetime], now: datetime, *, flapping: bool, faulty: bool
) -> tuple[tuple[datetime, ...], bool]:
    """Return the faults that count as flaps, and whether it is flapping now.

    What is flapping stays so until a user clears it.
    """
    if flaps is None:
        return (), False
    recent = tuple(time for time in times if now - time < flaps.within)[-FAULT_TIMES_MAX:]
    return recent, flapping or (faulty and len(recent) >= flaps.count)


def is_declared_healthy(
    recovered: datetime | None, cleared: datetime | None, now: datetime
) -> bool:
    """Report whether a user declared it healthy since it recovered.

    What was declared before, or is declared for the future, does not count.
    """
    return recovered is not None and cleared is not None and recovered <= cleared <= now
