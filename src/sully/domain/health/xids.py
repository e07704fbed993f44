"""XIDs: what the errors mean that NVIDIA's driver reports by number.

The classes follow NVIDIA's catalog (https://docs.nvidia.com/deploy/xid-errors): an XID whose first
action is to reset the GPU or to restart the node is fatal; one whose action is to restart the
application is the application's; one that can be ignored is information. The sentences are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

FATAL, APPLICATION, INFORMATIONAL, UNCLASSIFIED = XID_CLASSES = (
    "fatal",
    "application",
    "informational",
    "unclassified",
)


class Xid(NamedTuple):
    """The class of an XID, and what to print about it."""

    type: str
    text: str


_RESET = "Reset the GPU when no pod uses it."
_RESTART = "Drain the node and restart it; if it recurs, replace the GPU."
_APP = "The application has to be restarted; the GPU works."

XIDS: Mapping[int, Xid] = {
    8: Xid(APPLICATION, f"A channel of the GPU made no progress. {_APP}"),
    13: Xid(APPLICATION, f"A kernel caused an exception, for example an invalid address. {_APP}"),
    31: Xid(APPLICATION, f"A kernel accessed memory that is not mapped. {_APP}"),
    32: Xid(APPLICATION, f"The command stream of an application was corrupted. {_APP}"),
    38: Xid(FATAL, f"The firmware of the driver failed. {_RESET}"),
    43: Xid(APPLICATION, f"An application was stopped after a fault of its own. {_APP}"),
    45: Xid(INFORMATIONAL, "Work was removed from the GPU after another error or a termination."),
    46: Xid(FATAL, f"The GPU stopped processing. {_RESET}"),
    48: Xid(FATAL, f"A memory error could not be corrected. {_RESET}"),
    54: Xid(FATAL, "Auxiliary power is missing. Check the cables of the GPU."),
    61: Xid(FATAL, f"A microcontroller of the GPU stopped at a breakpoint. {_RESET}"),
    62: Xid(FATAL, f"A microcontroller of the GPU halted. {_RESET}"),
    63: Xid(INFORMATIONAL, "A row of memory was recorded for remapping at the next reset."),
    64: Xid(FATAL, f"A row of memory could not be recorded for remapping. {_RESET}"),
    66: Xid(APPLICATION, f"The driver found an illegal access. {_APP}"),
    67: Xid(APPLICATION, f"The driver found an illegal access. {_APP}"),
    68: Xid(APPLICATION, f"The video decoder caused an exception. {_APP}"),
    69: Xid(APPLICATION, f"A method of a graphics class failed. {_APP}"),
    74: Xid(FATAL, f"An NVLink failed. Check links, switches and the fabric manager. {_RESET}"),
    79: Xid(FATAL, f"The GPU has fallen off the bus. {_RESTART}"),
    92: Xid(INFORMATIONAL, "Many memory errors were corrected."),
    93: Xid(INFORMATIONAL, "The InfoROM is close to its limit of writes."),
    94: Xid(APPLICATION, f"A memory error was contained to one application. {_APP}"),
    95: Xid(FATAL, f"A memory error was not contained: all applications are affected. {_RESET}"),
    109: Xid(FATAL, f"A context switch timed out. {_RESET}"),
    110: Xid(FATAL, f"A security fault was detected. {_RESET}"),
    119: Xid(FATAL, f"The GPU System Processor did not answer in time. {_RESET}"),
    120: Xid(FATAL, f"The GPU System Processor failed. {_RESET}"),
    121: Xid(INFORMATIONAL, "An error on the chip-to-chip link was corrected."),
    136: Xid(FATAL, f"The training of an NVLink failed. {_RESET}"),
    137: Xid(APPLICATION, f"An application accessed remote memory without permission. {_APP}"),
    140: Xid(FATAL, f"A memory error was not recovered. {_RESET}"),
    143: Xid(FATAL, f"The GPU could not be initialized. {_RESET}"),
    **{
        number: Xid(FATAL, f"An NVLink failed. Check links, switches and the fabric. {_RESET}")
        for number in range(144, 151)
    },
    154: Xid(INFORMATIONAL, "The recovery action of the GPU changed."),
    155: Xid(FATAL, f"An NVLink failed an action of the software. {_RESET}"),
    156: Xid(FATAL, f"A resource of the GPU was retired. {_RESET}"),
    157: Xid(FATAL, f"A resource of the GPU could not be retired. {_RESET}"),
    158: Xid(FATAL, f"The GPU timed out. {_RESET}"),
}
_UNKNOWN = Xid(UNCLASSIFIED, "See NVIDIA's catalog of XIDs.")


def classify(number: int, overrides: Mapping[int, str] | None = None) -> Xid:
    """Return the class of an XID; `overrides` has those that somebody decided otherwise."""
    known = XIDS.get(number, _UNKNOWN)
    return known._replace(type=(overrides or {}).get(number, known.type))
