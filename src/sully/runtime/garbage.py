"""Keeps the garbage collector from looking again and again at what lives long.

A control plane holds hundreds of thousands of objects that never go, and the collector walks all of
them whenever enough new ones came: a tenth of a second each time, in which nobody is answered.
Nearly everything here dies by reference count; cycles are few. So what has outlived a collection of
the young is set aside, which costs nothing, and is looked at again only once there is much more of
it. While the young have no garbage to speak of, most lots of them are set aside without a look: to
look at every one, and at each once more later, cost a busy server five percent of its time, in
pauses of up to 80 ms, and found nothing.
"""

from __future__ import annotations

import asyncio
import gc

YOUNG = 50_000
"""How many new objects bring a collection of the young."""
UNSEEN = 3
"""How many such lots are set aside without a look after one that had hardly any garbage."""
LITTLE = YOUNG // 100
"""What hardly any is."""
SECONDS = 600.0
"""How often to see whether all of it should be looked at."""
GROWTH = 1.5
"""By how much it must have grown for that."""


class Keeper:
    """Sets aside what lives long; one for the whole process."""

    def __init__(self) -> None:
        self._settled = 0
        self._looks = True
        self._unseen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._threshold = gc.get_threshold()

    def start(self) -> None:
        """Set aside what there is, and from now on what stays."""
        gc.set_threshold(YOUNG, 1_000_000, 1_000_000)
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

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._looks = info["generation"] > 0 or self._unseen == 0
            if not self._looks:
                self._unseen -= 1
                gc.freeze()
        else:
            if self._looks:
                self._unseen = UNSEEN if info["collected"] < LITTLE else 0
            gc.freeze()
