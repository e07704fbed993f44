"""What is known of a pod without a node, and the frame of what is told about it.

waiting.py tells what must change first; refusals.py tells of nodes and devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from sully.api.sully.types import EvictionRecord
from sully.domain.explaining.evicted import evicted_before
from sully.domain.explaining.shortages import Askings
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Explanation, Table
from sully.domain.explaining.trials import Tries
from sully.domain.explaining.wording import since
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.domain.scheduling.objects import Pod

SCHEDULED: Final = "PodScheduled"
PENDING: Final = "Pending"

ClaimCause = Literal[
    "ClaimNotCreated",
    "TemplateMissing",
    "ClaimMissing",
    "ClaimDeleting",
    "ClaimOfOther",
    "ClaimFull",
    "DevicesNotReady",
    "DevicesFailed",
]


@dataclass(frozen=True, slots=True)
class ClaimProblem:
    """Why one of a pod's claims cannot be used."""

    cause: ClaimCause
    text: str
    because: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """What a claim has that a pod would like to share."""

    devices: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Who it is reserved for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What the scheduler would do with a pod now."""

    node: str = ""
    """Where it would go."""
    unresolved: str = ""
    """A request names a class that does not exist."""
    classes: tuple[str, ...] = ()
    """Those that do."""
    error: str = ""
    """Something is wrong with a request, a class or a pool."""
    message: str = ""
    """What Kubernetes would say."""
    account: Diagnosis | None = None
    rejections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Nodes that do not take the pod, devices aside, by reason."""
    nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFacts:
    """What is known of a pod without a node."""

    pod: Pod
    now: datetime
    sources: Sources
    problem: ClaimProblem | None = None
    constraint: str = ""
    """The field that constrains its place in a way that our scheduler does not evaluate."""
    attempt: Attempt | None = None
    """None where the nodes are not known."""
    told: Diagnosis | None = None
    """The account that the scheduler left in the pod's condition."""
    asked: Askings = field(default_factory=dict)
    tries: Tries | None = None
    users: Callable[[str], Sequence[str]] = lambda _: ()
    held: Callable[[str], Held] = lambda _: Held()
    before: tuple[EvictionRecord, ...] = ()
    """Evictions of pods that it came in place of."""
    ahead: tuple[str, ...] = ()
    """Pods that want devices of the same classes and are looked at before it."""
    published: int = 0
    """Devices that drivers publish, for whatever nodes."""


def story(
    facts: WaitingFacts,
    cause: str,
    *why: str,
    because: tuple[str, ...] = (),
    help_: tuple[str, ...] = (),
    details: tuple[Table, ...] = (),
) -> Explanation:
    """Put together what is told of a pod that waits."""
    metadata = facts.pod.metadata
    return Explanation(
        kind="Pod",
        namespace=metadata.namespace,
        name=metadata.name,
        state=PENDING,
        cause=cause,
        summary=(*why, *evicted_before(facts.before, facts.sources, facts.now)),
        because=because,
        remedies=help_,
        details=details,
    )


def waits(facts: WaitingFacts) -> str:
    """Begin the first sentence: who waits, and since when."""
    told = facts.pod.condition(SCHEDULED)
    at = told.last_transition_time if told is not None else None
    return f"Pod {facts.pod.label} waits for a node" + since(
        at or facts.pod.metadata.creation_timestamp, facts.now
    )
