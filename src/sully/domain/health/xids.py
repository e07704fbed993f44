"""XIDs: what the errors mean that NVIDIA's driver reports by number.

The class is the immediate action of NVIDIA's catalog for Ampere and newer GPUs
(https://docs.nvidia.com/deploy/xid-errors). An XID after which the GPU is reset or checked, or the
node restarted, is fatal; one after which the application is restarted is the application's; one
that can be ignored is information. Numbers that the catalog does not use, or for which it names a
contact, are not classified. Whether the NVLink errors 144 to 146 are fatal depends on a status that
NVML does not report, so they count as fatal. The sentences are ours.
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

_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_VIDEO_ENGINES = (60, 68, *range(82, 85), 86, 88, 89, *range(96, 106), 139)

XIDS: Mapping[int, Xid] = {
    8: Xid(APPLICATION, f"A channel of the GPU made no progress. {_APP}"),
    13: Xid(APPLICATION, f"A kernel caused an exception, for example an invalid address. {_APP}"),
    25: Xid(APPLICATION, f"The command stream of an application was invalid. {_APP}"),
    31: Xid(APPLICATION, f"A kernel accessed memory that is not mapped. {_APP}"),
    32: Xid(APPLICATION, f"The command stream of an application was corrupted. {_APP}"),
    37: Xid(INFORMATIONAL, "The firmware of the driver reported an error."),
    38: Xid(INFORMATIONAL, "The watchdog of the driver's firmware expired."),
    43: Xid(INFORMATIONAL, "An application was stopped after a fault of its own. The GPU works."),
    44: Xid(INFORMATIONAL, "The graphics engine reported a fault during a context switch."),
    45: Xid(INFORMATIONAL, "Work was removed from the GPU after another error or a termination."),
    46: Xid(FATAL, f"The GPU stopped processing. {_RESET}"),
    48: Xid(FATAL, f"A memory error could not be corrected. {_RESET}"),
    54: Xid(FATAL, "Auxiliary power is missing. Check the cables of the GPU."),
    62: Xid(FATAL, f"A microcontroller of the GPU halted. {_RESET}"),
    63: Xid(INFORMATIONAL, "A row of memory was recorded for remapping at the next reset."),
    64: Xid(FATAL, f"A row of memory could not be recorded for remapping. {_RESET}"),
    66: Xid(INFORMATIONAL, "The driver found an illegal access of its own."),
    67: Xid(INFORMATIONAL, "The driver found an illegal access of its own."),
    69: Xid(APPLICATION, f"A method of a graphics class failed. {_APP}"),
    74: Xid(FATAL, f"An NVLink failed. Check links, switches and the fabric manager. {_RESET}"),
    79: Xid(FATAL, f"The GPU has fallen off the bus. {_RESTART}"),
    80: Xid(APPLICATION, f"Data arrived corrupted at the GPU. {_APP}"),
    92: Xid(INFORMATIONAL, "Many memory errors were corrected."),
    93: Xid(INFORMATIONAL, "The InfoROM is close to its limit of writes."),
    94: Xid(APPLICATION, f"A memory error was contained to one application. {_APP}"),
    95: Xid(FATAL, f"A memory error was not contained: all applications are affected. {_RESET}"),
    106: Xid(INFORMATIONAL, "A test message of the management interface."),
    107: Xid(INFORMATIONAL, "A test message of the management interface."),
    108: Xid(INFORMATIONAL, "An address of a remote GPU could not be translated."),
    109: Xid(FATAL, f"A context switch timed out. {_RESET}"),
    110: Xid(FATAL, f"A security fault was detected. {_RESET}"),
    119: Xid(FATAL, f"The GPU System Processor did not answer in time. {_RESET}"),
    120: Xid(FATAL, f"The GPU System Processor failed. {_RESET}"),
    121: Xid(INFORMATIONAL, "An error on the chip-to-chip link was corrected."),
    136: Xid(FATAL, f"The training of an NVLink failed. {_RESET}"),
    137: Xid(INFORMATIONAL, "An application accessed the memory of another GPU illegally."),
    140: Xid(FATAL, f"A memory error was not recovered. {_RESET}"),
    141: Xid(INFORMATIONAL, "A fast path of CUDA reported an error."),
    143: Xid(FATAL, f"The GPU could not be initialized. {_RESET}"),
    147: Xid(INFORMATIONAL, "An NVLink reported an error that needs no action."),
    148: Xid(INFORMATIONAL, "An NVLink reported an error that needs no action."),
    151: Xid(FATAL, "The rotation of keys failed. Restart the virtual machine."),
    152: Xid(INFORMATIONAL, "A deep-learning accelerator reported an error of memory access."),
    153: Xid(INFORMATIONAL, "A deep-learning accelerator timed out."),
    154: Xid(INFORMATIONAL, "The recovery action of the GPU changed."),
    155: Xid(FATAL, f"Software took an NVLink down. {_RESET}"),
    156: Xid(FATAL, f"A resource of the GPU was retired. {_RESET}"),
    157: Xid(INFORMATIONAL, "A resource of the GPU could not be retired. The error may recur."),
    158: Xid(FATAL, f"The GPU timed out. {_RESET}"),
    160: Xid(INFORMATIONAL, "A memory channel was retired."),
    161: Xid(INFORMATIONAL, "A memory channel could not be retired. The error may recur."),
    **dict.fromkeys(_COPY_ENGINES, Xid(APPLICATION, f"A copy engine failed. {_APP}")),
    **dict.fromkeys(_VIDEO_ENGINES, Xid(APPLICATION, f"A video or image engine failed. {_APP}")),
    **dict.fromkeys(
        (144, 145, 146, 149, 150),
        Xid(FATAL, f"An NVLink failed. Check links, switches and the fabric. {_RESET}"),
    ),
}
_UNKNOWN = Xid(UNCLASSIFIED, "See NVIDIA's catalog of XIDs.")


def classify(number: int, overrides: Mapping[int, str] | None = None) -> Xid:
    """Return the class of an XID; `overrides` has those that a user overrides."""
    known = XIDS.get(number, _UNKNOWN)
    return known._replace(type=(overrides or {}).get(number, known.type))
