"""What the evaluators share whose objects no scope is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.domain.quota.objects import ScopeRequirement

Obj = dict[str, Any]


class Unscoped:
    """A kind that no scope is about: a quota with scopes does not count its objects."""

    __slots__ = ()

    def in_scope(self, _obj: Obj, _requirement: ScopeRequirement, /) -> bool:
        """Report that objects of the kind are in no scope."""
        return False

    def unspecified(self, _obj: Obj, _names: Iterable[str], /) -> str:
        """Name nothing: objects of the kind need not specify anything."""
        return ""
