"""Warnings about what has no effect on a server."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sully.cli.client.session import Session

if TYPE_CHECKING:
    from sully.domain.capabilities.inaction import Inaction


def inaction_text(inaction: "Inaction") -> str:
    """Return what has no effect, and what to do, in one line each."""
    return f"{inaction.text}\n  {inaction.remedy}"


def warn_of_inactions(session: Session, inactions: "Iterable[Inaction]") -> None:
    for inaction in inactions:
        session.warn(f"warning: {inaction_text(inaction)}")
