"""Pods that are known to be gone, so that nobody need ask the server again."""

from __future__ import annotations

from collections import OrderedDict

from sully.client.informers.informer import Informer
from sully.domain.scheduling.objects import Pod

REMEMBERED = 4096
"""Beyond this the longest gone are forgotten; about those the server is asked."""


class Departed:
    """The uids of the last pods that went."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()
        pods.on_change(self._changed)

    def __contains__(self, uid: str) -> bool:
        """Report whether a pod is gone for sure."""
        return uid in self._uids

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._uids)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            # Whoever restores a backup brings pods back.
            self._uids.pop(new.metadata.uid, None)
        elif old is not None:
            self._uids[old.metadata.uid] = None
            if len(self._uids) > REMEMBERED:
                self._uids.popitem(last=False)
