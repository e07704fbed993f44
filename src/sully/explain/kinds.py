"""The kinds that `explain` reads."""

from __future__ import annotations

from typing import Any

from sully.client.transport import Kind
from sully.views.kinds import CLASSES, SLICES
from sully.views.snapshot.kinds import (
    BUDGETS,
    CONSTRAINT_KINDS,
    HISTORY,
    NODES,
    SCHEDULING,
)

DEVICE_KINDS: tuple[Kind[Any], ...] = (
    *SCHEDULING,
    *CONSTRAINT_KINDS,
    *HISTORY,
    BUDGETS,
)
"""All about devices, and about what uses, requests or held them."""
EXPECTED_KINDS: tuple[Kind[Any], ...] = (SLICES, CLASSES, NODES)
"""What every cluster has, so a file without it is incomplete."""
