"""One question and its answer: the row of every table here."""

from __future__ import annotations

from dataclasses import dataclass

from explain.worlds import Obj, ask
from sully.explain.explanation import Explanation


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A cluster, a question, and what is true."""

    kind: str
    name: str
    objects: tuple[Obj, ...]
    after: float = 0
    """How many seconds after noon it is."""
    missing: tuple[str, ...] = ()
    """Kinds that the server does not have."""
    hidden: tuple[str, ...] = ()
    """Kinds that who asks may not see."""
    state: str
    cause: str
    first: str = ""
    """A part of the first sentence: the cause and its source."""
    contains: tuple[str, ...] = ()
    """Parts of sentences."""
    omits: tuple[str, ...] = ()
    """What no sentence contains."""
    because: tuple[str, ...] = ()
    """All objects that are named as reasons."""
    helps: str | None = ""
    """A part of a remedy; None: there must be none."""

    def check(self) -> Explanation:
        """Ask, and compare."""
        result = ask(
            self.kind,
            self.name,
            *self.objects,
            after=self.after,
            missing=self.missing,
            hidden=self.hidden,
        )
        text = "\n".join(result.summary)
        assert (result.state, result.cause) == (self.state, self.cause), text
        assert self.first in result.summary[0]
        for contain in self.contains:
            assert contain in text
        for omit in self.omits:
            assert omit not in text
        assert result.because == self.because
        remedies = "\n".join(result.remedies)
        assert remedies == "" if self.helps is None else self.helps in remedies
        return result
