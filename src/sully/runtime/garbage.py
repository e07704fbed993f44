"""Keeps the garbage collector from looking again and again at what lives long.

A control plane holds hundreds of thousands of objects that never go, and the collector walks all of
them whenever enough new ones came: a tenth of a second each time, in which nobody is answered.
Nearly everything here dies by reference count; cycles are few. So what has outlived a collection is
set aside, which costs nothing, and is looked at again only once there is much more of it.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any

YOUNG = 50_000
"""How many new objects bring a collection of the young."""
OUTLIVED = 3
"""After so many collections what is left is set aside."""
SECONDS = 600.0
"""How often to see whether all of it should be looked at."""
GROWTH = 1.5
"""By how much it must have grown for that."""


class Keeper:
    """Sets aside what lives long; one for the whole process."""

    def __init__(self) -> None:
        self._settled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._threshold = gc.get_threshold()

    def start(self) -> None:
        """Set aside what there is, and from now on what stays."""
        gc.set_threshold(YOUNG, OUTLIVED, 1_000_000)
        gc.freeze()
        self._settled = gc.get_freeze_count()
        gc.callbacks.append(self._collected)
        self._wait()

    def stop(self) -> None:
        """Leave everything to the collector again."""
        if self._timer is not None:
            self._timer.cancel()
        gc.callbacks.remove(self._collected)
        gc.set_threshold(*self._threshold)
        gc.unfreeze()

    def sweep(self) -> None:
        """Look at everything, also at what was set aside."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._settled = gc.get_freeze_count()

    def look(self) -> None:
        """Sweep if so much was set aside that there may be garbage among it."""
        if gc.get_freeze_count() > self._settled * GROWTH:
            self.sweep()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SECONDS, self._due)

    def _due(self) -> None:
        self.look()
        self._wait()

    def _collected(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] > 0:
            gc.freeze()
