"""Warns on writes of taint rules what they select, and how many pods they will evict.

The numbers come from views that this process keeps, those of the eviction controller if it runs
here: reading them takes no I/O. There is no warning until they are complete.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sully.api.resource.annotations import PAUSED
from sully.api.resource.types import DeviceTaintRule
from sully.machinery.strategy import Obj
from sully.server.requests import Request

RULES = "resource.k8s.io/devicetaintrules"


class RuleNotices:
    """Describes rules that are about to be written."""

    def __init__(self) -> None:
        self.describe: Callable[[DeviceTaintRule], str] | None = None

    def of(self, request: Request, obj: Obj | None, old: Obj | None) -> list[str]:
        """Return warnings about a rule that is new or that selects or evicts differently."""
        target = request.target
        if self.describe is None or obj is None or target.resource.storage_key != RULES:
            return []
        if target.subresource or (old is not None and _acts_alike(obj, old)):
            return []
        text = self.describe(msgspec.convert(obj, DeviceTaintRule))
        return [text] if text else []


def _acts_alike(obj: Obj, old: Obj) -> bool:
    def paused(rule: Obj) -> str:
        return str((rule["metadata"].get("annotations") or {}).get(PAUSED, ""))

    return bool(obj["spec"] == old["spec"]) and paused(obj) == paused(old)
