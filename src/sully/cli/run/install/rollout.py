"""Waits until the Deployment that `sully install` wrote is ready, and shows why it is not."""

from collections.abc import Iterable, Mapping

import msgspec

from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.client.options import ListOptions
from sully.client.transport import Key
from sully.controllers.workloads.kinds import DEPLOYMENTS
from sully.domain.workloads.pod_problems import ReportedPod, start_problems
from sully.domain.workloads.workloads import Deployment
from sully.views.snapshot.kinds import PODS

POLL_SECONDS = 0.5


class RolloutStatus(msgspec.Struct, frozen=True):
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


def rollout_of(deployment: Deployment, pods: Iterable[ReportedPod]) -> RolloutStatus:
    """Read how far a rollout is from a Deployment and its pods."""
    status = deployment.status
    observed = status.observed_generation >= deployment.metadata.generation
    # Replicas of an older template are ready, but not what was written.
    ready = min(status.available_replicas, status.updated_replicas)
    problems: dict[str, str] = {}
    for pod in pods:
        for reason, message in start_problems(pod):
            text = ": ".join(filter(None, (pod.metadata.name, reason, message)))
            problems.setdefault(reason, text)
    return RolloutStatus(
        ready if observed else 0, deployment.spec.replicas, tuple(problems.values())
    )


async def wait_ready(
    session: Session, name: Key, labels: Mapping[str, str], seconds: float
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


async def _read(session: Session, name: Key, labels: Mapping[str, str]) -> RolloutStatus:
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    deployment = await session.transport.get(DEPLOYMENTS, name)
    options = ListOptions(label_selector=selector)
    page = await session.transport.list(PODS.read_as(ReportedPod), name.namespace, options)
    return rollout_of(deployment, page.items)


def _not_ready(name: Key, rollout: RolloutStatus, seconds: float) -> str:
    lines = [
        f'deployment "{name}" is not ready after {seconds:g}s: {rollout.ready} of {rollout.desired}'
        " replicas are ready",
        *(f"  pod {problem}" for problem in rollout.problems),
        "  everything is installed; check that the nodes can pull the image, and repeat the command"
        " or see 'kubectl describe pods"
        f" -n {name.namespace}'",
    ]
    return "\n".join(lines)
