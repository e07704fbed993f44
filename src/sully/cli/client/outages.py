"""Tells whoever watches that the server is away, and when it answers again: a line each.

Controllers log the same (`client/informers/outages.py`); a person at a terminal is told in words,
and once, however many kinds the command follows.
"""

from collections.abc import Hashable

from sully.cli.client.calling import Session
from sully.cli.client.words import span
from sully.client.informers.outages import Outages, is_outage
from sully.client.transport import UnreachableError


class ReportedOutages(Outages):
    """The troubles of all that a command follows."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.clock)
        self._session = session

    def failed(self, who: Hashable, error: Exception) -> bool:
        """Tell of a trouble that is new; for the log it never is."""
        if super().failed(who, error):
            why = error.why if isinstance(error, UnreachableError) else error
            away = f"{self._session.server} is away: {why}"
            told = away if is_outage(error) else f"cannot follow what happens: {error}"
            self._session.warn(f"{told}\n  the watch goes on when that is over")
        return False

    def _report_server_reachable(self, seconds: float) -> None:
        self._session.warn(f"{self._session.server} answers again, after {span(seconds)}")

    def _report_recovered(self, name: str, seconds: float) -> None:
        self._session.warn(f"{name} can be followed again, after {span(seconds)}")
