"""The body of a request to a receiver.

Names of objects are written by others, so Slack's control characters in them are escaped.
"""

from __future__ import annotations

from typing import Any, Final

from sully.domain.notifications.batches import Batch
from sully.domain.notifications.kinds import SUMMARIES
from sully.domain.notifications.settings import SLACK, Receiver
from sully.machinery.formats.timestamps import format_time

LINES_MAX: Final = 20
"""How many notifications a message lists; it has the number of all of them."""
VERSION: Final = "sully.dev/v1"


def payload(receiver: Receiver, batch: Batch) -> dict[str, Any]:
    """Return the JSON body."""
    if receiver.format == SLACK:
        return {"text": text(receiver, batch, slack=True)}
    return {
        "version": VERSION,
        "kind": batch.kind,
        "text": text(receiver, batch),
        "count": len(batch.notifications),
        "notifications": [
            {"about": one.about, "message": one.message, "time": format_time(one.time)}
            for one in batch.notifications[:LINES_MAX]
        ],
    }


def text(receiver: Receiver, batch: Batch, *, slack: bool = False) -> str:
    """Return the text of a message, by the template of the receiver."""
    lines = [f"{one.about}: {one.message}" for one in batch.notifications[:LINES_MAX]]
    more = len(batch.notifications) - len(lines)
    lines += [f"and {more} more"] if more else []
    joined = "\n".join(map(_escaped, lines) if slack else lines)
    return receiver.template.substitute(
        kind=batch.kind,
        summary=f"Sully: {SUMMARIES[batch.kind]}",
        count=len(batch.notifications),
        lines=joined,
    )


def _escaped(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
