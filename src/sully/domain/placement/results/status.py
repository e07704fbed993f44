"""How one pass over a placement went, in the vocabulary of OCM."""

from __future__ import annotations

from typing import Literal

import msgspec

Code = Literal["Success", "Warning", "Error", "Misconfigured"]


class Status(msgspec.Struct, frozen=True):
    """The result of a pass; `plugin` names the part that failed or warned, if one did."""

    code: Code = "Success"
    plugin: str = ""
    message: str = ""

    @property
    def stops(self) -> bool:
        """Report whether nothing can be selected."""
        return self.code in ("Error", "Misconfigured")


SUCCESS = Status()


class MisconfiguredError(Exception):
    """A placement that cannot be scheduled as it is."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.status = Status("Misconfigured", plugin, message)
