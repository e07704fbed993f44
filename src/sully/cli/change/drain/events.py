"""Events on the pods that `sully drain` evicts: the Eviction API leaves no record of them."""

from typing import TYPE_CHECKING

from sully.cli.client.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sully.domain.drain.messages import DrainPod

REASON = "EvictedByDrain"
_COMPONENT = "sully-drain"


class DrainEvents:
    """Creates an Event for each evicted pod, as far as the user may; no drain depends on it."""

    def __init__(self, session: Session, rules: "Sequence[str]") -> None:
        more = f" and {len(rules) - 1} more" if len(rules) > 1 else ""
        reason = session.options.reason
        self._text = f"Evicted by 'sully drain', DeviceTaintRule {rules[0]}{more}"
        self._text += f": {reason}" if reason else ""
        self._session = session
        self._forbidden = False

    async def record(self, pod: "DrainPod") -> None:
        """Create the Event of a pod that was evicted."""
        from sully.client.events import EVENTS, MAX_MESSAGE
        from sully.client.transport import UnreachableError
        from sully.machinery.errors import ApiError, Forbidden
        from sully.machinery.formats.timestamps import format_time

        if self._forbidden:
            return
        now = format_time(self._session.clock.now())
        about = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name}
        body = {
            "metadata": {"generateName": f"{pod.name}.", "namespace": pod.namespace},
            "involvedObject": {**about, "uid": pod.uid},
            "type": "Normal",
            "reason": REASON,
            "message": self._text[:MAX_MESSAGE],
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._session.transport.create(EVENTS, body)
        except Forbidden:
            # Others would be refused as well.
            self._forbidden = True
        except (ApiError, UnreachableError):
            pass
