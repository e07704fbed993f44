"""The priorities of pods: which class gives which, and the classes of the system."""

from typing import Any, Final

from sully.machinery.errors import pod_not_admitted
from sully.machinery.strategy import WriteContext

Obj = dict[str, Any]

PREEMPT: Final = "PreemptLowerPriority"
CLASSES: Final = "scheduling.k8s.io/priorityclasses"
SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_BAD_PRIORITY = (
    "the integer value of priority ({}) must not be provided in pod spec;"
    " priority admission controller computed {} from the given PriorityClass name"
)
_BAD_PREEMPTION = (
    "the string value of PreemptionPolicy ({}) must not be provided in pod spec;"
    " priority admission controller computed {} from the given PriorityClass name"
)


def admit_priority(pod: Obj, ctx: WriteContext) -> None:
    """Set the priority of a new pod from its class, or from the default class."""
    spec = pod["spec"]
    name, priority, preemption = _class_values(pod, spec.get("priorityClassName", ""), ctx)
    if spec.get("priority", priority) != priority:
        raise pod_not_admitted(pod, _BAD_PRIORITY.format(spec["priority"], priority))
    if spec.get("preemptionPolicy", preemption) != preemption:
        raise pod_not_admitted(pod, _BAD_PREEMPTION.format(spec["preemptionPolicy"], preemption))
    spec["priority"], spec["preemptionPolicy"] = priority, preemption
    if name:
        spec["priorityClassName"] = name


def _class_values(pod: Obj, name: str, ctx: WriteContext) -> tuple[str, int, str]:
    if name:
        priority_class = ctx.lookup(CLASSES, "", name)
        if priority_class is None:
            if name in SYSTEM_PRIORITIES:
                return name, SYSTEM_PRIORITIES[name], PREEMPT
            raise pod_not_admitted(pod, f"no PriorityClass with name {name} was found")
    else:
        priority_class = ctx.default_priority_class()
        if priority_class is None:
            return "", 0, PREEMPT
    policy = priority_class.get("preemptionPolicy") or PREEMPT
    return priority_class["metadata"]["name"], int(priority_class["value"]), policy
