"""Whether the eviction controller of Kubernetes runs beside that of Sully, by what they write.

Kubernetes writes the status of each rule within a second after it is created or changed, whatever
its effect. Sully writes it as a field manager of its own there, and when it starts it removes the
other one's entries. So an entry of Kubernetes beside one of Sully was written since then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

OF_KUBERNETES = "device-taint-eviction-controller"
"""The field manager of Kubernetes' eviction controller."""
OF_SULLY = "sully-device-taint-eviction-controller"
"""The field manager of Sully's eviction controller where Kubernetes may have its own."""
DISABLE_SECOND = (
    f"to disable its evictor, start kube-controller-manager with --controllers=*,-{OF_KUBERNETES}"
)

Obj = Mapping[str, Any]


def status_written(rule: Obj, manager: str) -> str:
    """Return when a field manager has last written the status of a rule; empty: never."""
    metadata = rule.get("metadata") or {}
    times = (
        # Kubernetes sets no time if a write changes no value: it was after the creation.
        str(entry.get("time") or metadata.get("creationTimestamp") or "unknown")
        for entry in metadata.get("managedFields") or ()
        if entry.get("manager") == manager and entry.get("subresource") == "status"
    )
    # All have the same format, in UTC.
    return max(times, default="")


def kubernetes_evicts(rules: Iterable[Obj]) -> str:
    """Return the newest evidence that Kubernetes evicts as well as Sully; empty: there is none."""
    written_by_both = [
        (time, str(rule["metadata"]["name"]))
        for rule in rules
        if (time := status_written(rule, OF_KUBERNETES)) and status_written(rule, OF_SULLY)
    ]
    if not written_by_both:
        return ""
    time, name = max(written_by_both)
    return f'it wrote the status of devicetaintrule "{name}" at {time}'
