"""Reasons of Events that several controllers record; the others are where they are recorded."""

from typing import Final

EXPIRED: Final = "Expired"
"""A rule, a patch or a taint of a cluster was removed because it expired."""
CEL_RUNTIME_ERROR: Final = "CELRuntimeError"
"""A selector of a rule or a patch failed for a device."""
