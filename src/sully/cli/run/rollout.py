"""Waits until the Deployment that `sully install` wrote is ready, and shows why it is not."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sully.cli.client.session import Session
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.client.transport import Key

Obj = Mapping[str, Any]
POLL_SECONDS = 0.5


class Rollout(msgspec.Struct, frozen=True):
    """How many replicas are ready, and why others are not."""

    ready: int
    desired: int
    problems: tuple[str, ...] = ()
    """`POD: REASON: message`, each reason once."""

    @property
    def done(self) -> bool:
        return self.ready >= self.desired

    def __str__(self) -> str:
        """Return it as one line, with the first problem."""
        why = f" ({self.problems[0]})" if self.problems else ""
        return f"{self.ready} of {self.desired} replicas are ready{why}"


def rollout_of(deployment: Obj, pods: Iterable[Obj]) -> Rollout:
    """Read how far a rollout is from a Deployment and its pods."""
    status, desired = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    # Replicas of an older template are ready, but not what was written.
    ready = min(status.get("availableReplicas", 0), status.get("updatedReplicas", 0))
    problems: dict[str, str] = {}
    for pod in pods:
        for reason, message in _problems(pod):
            text = ": ".join(filter(None, (pod["metadata"]["name"], reason, message)))
            problems.setdefault(reason, text)
    return Rollout(ready if observed else 0, desired, tuple(problems.values()))


def _problems(pod: Obj) -> Iterable[tuple[str, str]]:
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "", "ContainerCreating", "PodInitializing"):
            yield waiting["reason"], waiting.get("message", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield condition.get("reason", "Unschedulable"), condition.get("message", "")


async def wait_ready(
    session: Session, name: "Key", labels: Mapping[str, str], seconds: float
) -> None:
    """Wait until a Deployment is ready; raise after so many seconds."""
    end = session.clock.monotonic() + seconds
    shown = None
    while True:
        rollout = await _read(session, name, labels)
        if rollout.done:
            return
        if session.clock.monotonic() >= end:
            raise CommandError(_not_ready(name, rollout, seconds))
        if rollout != shown:
            session.warn(f'waiting for deployment "{name}": {rollout}')
            shown = rollout
        await session.clock.sleep(POLL_SECONDS)


async def _read(session: Session, name: "Key", labels: Mapping[str, str]) -> Rollout:
    from sully.client.options import ListOptions
    from sully.client.transport import Kind

    deployments: Kind[Obj] = Kind("apps", "v1", "deployments", "Deployment", dict)
    pods: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    deployment = await session.transport.get(deployments, name)
    options = ListOptions(label_selector=selector)
    page = await session.transport.list(pods, name.namespace, options)
    return rollout_of(deployment, page.items)


def _not_ready(name: "Key", rollout: Rollout, seconds: float) -> str:
    lines = [
        f'deployment "{name}" is not ready after {seconds:g}s: {rollout.ready} of {rollout.desired}'
        " replicas are ready",
        *(f"  pod {problem}" for problem in rollout.problems),
        "  everything is installed; check that the nodes can pull the image, and repeat the command"
        " or see 'kubectl describe pods"
        f" -n {name.namespace}'",
    ]
    return "\n".join(lines)
