"""Tells whoever watches that the server is away, and when it answers again: a line each.

Controllers log the same (`client/troubles.py`); a person at a terminal is told in words, and once,
however many kinds the command follows.
"""

from collections.abc import Hashable

from sully.cli.client.calling import Session
from sully.cli.client.words import span
from sully.client.informers.outages import Troubles, is_outage
from sully.client.transport import UnreachableError


class Outages(Troubles):
    """The troubles of all that a command follows."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.clock)
        self._session = session

    def began(self, who: Hashable, error: Exception) -> bool:
        """Tell of a trouble that is new; for the log it never is."""
        if super().began(who, error):
            why = error.why if isinstance(error, UnreachableError) else error
            away = f"{self._session.server} is away: {why}"
            told = away if is_outage(error) else f"cannot follow what happens: {error}"
            self._session.warn(f"{told}\n  the watch goes on when that is over")
        return False

    def _tell_of_server(self, seconds: float) -> None:
        self._session.warn(f"{self._session.server} answers again, after {span(seconds)}")

    def _tell_of_one(self, name: str, seconds: float) -> None:
        self._session.warn(f"{name} can be followed again, after {span(seconds)}")
