"""Pods that wait behind one that asks the same and was refused: they need not be looked at.

When a thousand equal pods find no place, the scheduler would be asked a thousand times for every
device that comes free. One of them stands for all: the one that the queue would look at first.
When it gets a node, or gives up, the next steps forward. Who takes something leaves less for
others, so whoever is behind would have been refused as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from sully.client.transport import Key
from sully.controllers.scheduling.questions import Question
from sully.controllers.scheduling.queue import Rank


@dataclass(slots=True)
class _Line:
    first: tuple[Rank, Key]
    """Who stands for all."""
    behind: list[tuple[Rank, Key]] = field(default_factory=list)


class Lines:
    """Lines of pods that ask the same."""

    def __init__(self, step_forward: Callable[[Key], None]) -> None:
        self._step_forward = step_forward
        self._lines: dict[Question, _Line] = {}
        self._places: dict[Key, tuple[Question, Rank]] = {}
        """Who stands in which line; whoever stands there no more is only forgotten here."""

    def __bool__(self) -> bool:
        """Say whether anybody stands in line."""
        return bool(self._lines)

    def first(self, question: Question) -> tuple[Rank, Key] | None:
        """Return who stands for all that ask something, if someone does."""
        line = self._lines.get(question)
        return line.first if line is not None else None

    def join(self, question: Question, rank: Rank, key: Key) -> Key | None:
        """Let a pod that was refused stand in line; return who is behind another from now on."""
        line = self._lines.get(question)
        if line is not None and self._stands(question, (rank, key)):
            return key if line.first != (rank, key) else None
        self.leave(key)
        self._places[key] = question, rank
        line = self._lines.get(question)
        if line is None:
            self._lines[question] = _Line((rank, key))
            return None
        back = max(line.first, (rank, key))
        line.first = min(line.first, (rank, key))
        heappush(line.behind, back)
        return back[1]

    def leave(self, key: Key) -> None:
        """Let a pod go; if others stood behind it, the next of them steps forward."""
        question, rank = self._places.pop(key, (b"", None))
        line = self._lines.get(question)
        if line is None or line.first != (rank, key):
            return
        while line.behind:
            line.first = heappop(line.behind)
            if self._stands(question, line.first):
                self._step_forward(line.first[1])
                return
        del self._lines[question]

    def behind(self) -> Iterator[tuple[Key, Key]]:
        """Yield all that wait behind another, each with who stands for it."""
        for question, line in self._lines.items():
            for each in line.behind:
                if self._stands(question, each):
                    yield each[1], line.first[1]

    def _stands(self, question: Question, each: tuple[Rank, Key]) -> bool:
        rank, key = each
        return self._places.get(key) == (question, rank)
