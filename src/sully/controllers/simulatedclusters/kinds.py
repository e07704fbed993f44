"""What simulated clusters read, and the name they go by."""

from __future__ import annotations

from typing import Any

from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.controllers.kinds import CLUSTER_LEASES
from sully.domain.simulated.fleet import SIMULATED

AGENT = "hollow-clusters"
"""Whose program it is; roles and owned fields go by it."""
OURS = ObjectSelector(label_selector=f"{SIMULATED}=true")
"""Which clusters are ours."""
LEASES: Kind[dict[str, Any]] = CLUSTER_LEASES.read_as(dict)
