"""Gives pods addresses, each from the network of its machine, no two the same."""

from __future__ import annotations

from sully.domain.simulated.fleet import pod_network
from sully.domain.simulated.pods import Pod

_LAST = 254


class Addresses:
    """The addresses that pods have; fed by an informer of pods."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        """The address of a pod, by uid."""
        self._taken: set[str] = set()
        self._next: dict[int, int] = {}

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note the address of a pod, or that it has none any more."""
        if old is not None and (new is None or new.finished):
            self._release(old.metadata.uid)
        elif new is not None and _has_own(new):
            self._note(new.metadata.uid, new.status.pod_ip)

    def take(self, number: int, uid: str) -> str:
        """Return a pod's address on a machine; others may still know the one that was last free."""
        if uid in self._of:
            return self._of[uid]
        network, start = pod_network(number), self._next.get(number, 1)
        for step in range(_LAST):
            last = (start + step - 1) % _LAST + 1
            address = f"{network}{last}"
            if address not in self._taken:
                self._next[number] = last + 1
                self._note(uid, address)
                return address
        raise RuntimeError(f"no address is left in {network}0/24")

    def _note(self, uid: str, address: str) -> None:
        self._of[uid] = address
        self._taken.add(address)

    def _release(self, uid: str) -> None:
        self._taken.discard(self._of.pop(uid, ""))


def _has_own(pod: Pod) -> bool:
    return bool(pod.status.pod_ip) and not pod.spec.host_network and not pod.finished
