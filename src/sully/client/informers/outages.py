"""Tells of an outage once when it begins and once when it is over, however many suffer from it.

A server that goes away stops twenty watches and every write at once, and each of them tries again
and again. Whoever fails asks here whether that is news; what is not is logged for debugging only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field

from sully.client.transport import UnreachableError
from sully.machinery.errors import ServiceUnavailable, TooManyRequests
from sully.runtime.clock import Clock, Moment
from sully.runtime.log import get_logger

log = get_logger("client")

SERVER = "server"
"""The trouble that all share; any other one belongs to who has it."""
_AWAY = (UnreachableError, ServiceUnavailable, TooManyRequests)


def is_outage(error: Exception) -> bool:
    """Say whether an error means that the server is away or cannot keep up."""
    return isinstance(error, _AWAY)


@dataclass(slots=True)
class _Trouble:
    since: Moment
    who: set[Hashable] = field(default_factory=set)


class Troubles:
    """Who suffers from what."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[Hashable, _Trouble] = {}
        self._what: dict[Hashable, Hashable] = {}
        self._answered = asyncio.Event()

    @property
    def away(self) -> bool:
        """Say whether the server is away, at least for some."""
        return SERVER in self._troubles

    def began(self, who: Hashable, error: Exception) -> bool:
        """Note that someone failed; say whether that is news."""
        what: Hashable = SERVER if is_outage(error) else (who, type(error).__name__)
        if self._what.get(who) == what:
            return False
        self._leave(who)
        news = what not in self._troubles
        trouble = self._troubles.setdefault(what, _Trouble(Moment.of(self._clock)))
        trouble.who.add(who)
        self._what[who] = what
        return news

    def over(self, who: Hashable, name: str) -> None:
        """Note that someone succeeded, and tell if it was the last who suffered."""
        if self._what.get(who) == SERVER:
            self._answered.set()
            self._answered = asyncio.Event()
        ended = self._leave(who)
        if ended is None:
            return
        what, trouble = ended
        seconds = trouble.since.since(self._clock)
        if what == SERVER:
            self._tell_of_server(seconds)
        else:
            self._tell_of_one(name, seconds)

    def relieved(self, who: Hashable) -> None:
        """Note that someone no longer fails, which may be because it had nothing to ask.

        An outage goes on until the server is heard: else it would be told of twice.
        """
        what = self._what.pop(who, None)
        if what is not None:
            self._troubles[what].who.discard(who)
            if what != SERVER:
                del self._troubles[what]

    def heard(self) -> None:
        """Note that the server spoke to someone who does not suffer."""
        trouble = self._troubles.get(SERVER)
        if trouble is not None and not trouble.who:
            del self._troubles[SERVER]
            self._tell_of_server(trouble.since.since(self._clock))

    async def answered(self) -> None:
        """Wait until the server has answered one who suffered: no other needs to wait longer."""
        await self._answered.wait()

    def forget(self, who: Hashable) -> None:
        """Note that someone does not try any more."""
        self._leave(who)

    def _tell_of_server(self, seconds: float) -> None:
        log.info("the server answers again", after=round(seconds, 3))

    def _tell_of_one(self, name: str, seconds: float) -> None:
        log.info("works again", what=name, after=round(seconds, 3))

    def _leave(self, who: Hashable) -> tuple[Hashable, _Trouble] | None:
        """Return the trouble that nobody has any more, if it is so."""
        what = self._what.pop(who, None)
        if what is None:
            return None
        trouble = self._troubles[what]
        trouble.who.discard(who)
        if trouble.who:
            return None
        return what, self._troubles.pop(what)
