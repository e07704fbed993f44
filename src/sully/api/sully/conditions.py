"""Types of conditions that several kinds have, whoever serves them."""

from typing import Final

APPLIED: Final = "sully.dev/Applied"
"""Policies, maintenances and ResourceSlicePatches: what they select, or why they have no effect."""
