"""Pods that have no node: the pod itself, its claims, the nodes, or the devices.

What must change first comes first: a gate before claims, claims before nodes, nodes before devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from msgspec.structs import replace

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.api.resource.types import DeviceTaintSelector
from sully.client.objects import key_of
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS, Diagnosis, RequestAccount, decode
from sully.domain.scheduling.filters import named_nodes
from sully.domain.scheduling.messages import allocation_failure, unknown
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.volumes.topology import Provisioning
from sully.explain.causes import Finding, Note, PendingFacts, note
from sully.explain.explanation import Table, tables
from sully.explain.facts.pods.pending_claims import find_claim_problem, pending_finding
from sully.explain.facts.pods.rejections import (
    failure_advice,
    other_rejections,
    rejected_nodes,
    rejection_note,
)
from sully.explain.facts.pods.solutions import SolutionWriter
from sully.explain.reader import Reader
from sully.explain.shortages import (
    RequestSpecs,
    ShortageReader,
    request_specs,
)
from sully.explain.text import enumerate_names
from sully.explain.trials.changes import Change, LargestNode, Solution
from sully.explain.trials.scheduler import (
    RejectedNodes,
    SchedulerCopy,
    SchedulingTrial,
    resolve_claims,
    unallocated,
)
from sully.explain.trials.search import remaining, solutions, too_large
from sully.explain.trials.what_if import PodTrials, key_from
from sully.views.kinds import CLAIMS, CLASSES
from sully.views.snapshot.kinds import NODES, PODS

_MAX_REASONS: Final = 3
_MAX_NODES: Final = 8
_Advice = tuple[tuple[Note, ...], tuple[Note, ...]]
"""What else to report, and what to look at."""


def find_pending(reader: Reader, pod: Pod, previous: tuple[Note, ...]) -> Finding:
    finding = _PendingPod(reader, pod).find()
    condition = pod.condition(POD_SCHEDULED)
    since = condition.last_transition_time if condition is not None else None
    return replace(
        finding,
        since=since or pod.metadata.creation_timestamp,
        also=(*finding.also, *_named_nodes(pod), *_quoted(reader, pod, finding), *previous),
    )


def _quoted(reader: Reader, pod: Pod, finding: Finding) -> Iterator[Note]:
    """Yield what the scheduler reports that acts there, if it is not ours."""
    condition, ours = pod.condition(POD_SCHEDULED), pod.uses_scheduler()
    if condition is None or not condition.message or condition.reason == "SchedulingGated":
        return
    if ours and reader.snapshot.control_plane.scheduler == "Sully":
        return
    if finding.cause != "Unschedulable":
        name = "kube-scheduler" if ours else pod.spec.scheduler_name
        yield note("SchedulerReports", scheduler=name, message=condition.message)


def _named_nodes(pod: Pod) -> Iterator[Note]:
    if names := named_nodes(pod):
        owner = pod.metadata.controller()
        by = f"{owner.kind} {owner.name}" if owner is not None else ""
        yield note("NamedNodes", names=sorted(names), owner=by)


def current_diagnosis(reader: Reader, pod: Pod) -> Diagnosis | None:
    """Return why there are no devices for a Pending pod, as it is now."""
    resolved = resolve_claims(pod, reader.snapshot)
    if reader.scheduler is None or resolved.message or not pod.needs_scheduling:
        return recorded_diagnosis(pod)
    return reader.scheduler.diagnosis(pod, resolved.claims)


def recorded_diagnosis(pod: Pod) -> Diagnosis | None:
    """Return the diagnosis that the scheduler wrote into the condition of a pod."""
    condition = pod.condition(DEVICE_DIAGNOSIS)
    return decode(condition.message) if condition is not None else None


class _PendingPod:
    def __init__(self, reader: Reader, pod: Pod) -> None:
        self.reader = reader
        self.pod = pod
        self.resolved = resolve_claims(pod, reader.snapshot)
        self.named = tuple(sorted(named_nodes(pod) or ()))
        """The only nodes that count, if its affinity names them."""

    @cached_property
    def scheduler(self) -> SchedulerCopy | None:
        """Return a scheduler that knows the nodes that count for the pod."""
        if self.reader.scheduler is None or not self.named:
            return self.reader.scheduler
        snapshot = self.reader.snapshot
        keys = map(key_of, snapshot.of(NODES).values())
        others = [key for key in keys if key.name not in self.named]
        return SchedulerCopy(snapshot.without(NODES, *others))

    def find(self) -> Finding:
        finding = (
            self._of_pod()
            or find_claim_problem(self.reader, self.pod, self.resolved)
            or self._of_attempt()
            or self._of_devices(recorded_diagnosis(self.pod))
            or self._unknown()
        )
        return replace(finding, also=(*finding.also, *self._not_decided()))

    def _not_decided(self) -> Iterator[Note]:
        """Yield what else decides, and what else the scheduler may do."""
        attempt = self.attempt if not self.resolved.message else None
        if attempt is None:
            return
        provisioning = _to_provision(attempt)
        if more := [text for text in map(unknown, attempt.unknown) if text not in provisioning]:
            yield note("NotEvaluated", what=more)
        for preemption in attempt.preemptions:
            yield note("MayPreempt", pods=preemption.victims, node=preemption.node)

    def _finding(
        self,
        cause: str,
        facts: PendingFacts | None = None,
        because: Iterable[str] = (),
        **more: Any,
    ) -> Finding:
        return pending_finding(self.pod, cause, facts or PendingFacts(), because, **more)

    def _of_pod(self) -> Finding | None:
        """Find what excludes every scheduler, or ours."""
        spec = self.pod.spec
        if not self.pod.uses_scheduler():
            facts = PendingFacts(scheduler=spec.scheduler_name)
            return self._finding("OtherScheduler", facts, also=tuple(self._evaluated()))
        if spec.scheduling_gates:
            gates = tuple(str(gate.get("name", "")) for gate in spec.scheduling_gates)
            facts = PendingFacts(gates=gates)
            return self._finding("SchedulingGated", facts, also=tuple(self._evaluated()))
        return None

    def _evaluated(self) -> Iterator[Note]:
        """Yield whether nodes and devices would do, for any scheduler."""
        attempt = self.attempt if not self.resolved.message else None
        if attempt is not None and attempt.node:
            yield note("WouldFit", node=attempt.node)
        elif attempt is not None and attempt.message:
            yield note("WouldNotFit", message=attempt.message)

    # -- the scheduler ----------------------------------------------------------------------------

    @cached_property
    def attempt(self) -> SchedulingTrial | None:
        scheduler = self.scheduler
        return scheduler.attempt(self.pod, self.resolved.claims) if scheduler is not None else None

    @cached_property
    def trials(self) -> PodTrials | None:
        scheduler = self.scheduler
        return PodTrials(scheduler, self.pod, self.resolved.claims) if scheduler else None

    @cached_property
    def specs(self) -> RequestSpecs:
        scheduler, snapshot = self.reader.scheduler, self.reader.snapshot
        extension = scheduler.extension(self.pod) if scheduler is not None else None
        return request_specs(
            unallocated(self.resolved.claims), snapshot.inventory.class_, extension
        )

    def _of_attempt(self) -> Finding | None:
        attempt = self.attempt
        if attempt is None:
            return None
        if attempt.unresolved:
            classes = self.reader.snapshot.of(CLASSES).values()
            names = tuple(sorted(class_.metadata.name for class_ in classes))
            facts = PendingFacts(message=attempt.unresolved, classes=names)
            return self._finding("ClassMissing", facts)
        if attempt.failure is not None:
            text = allocation_failure(attempt.failure)
            facts = PendingFacts(message=text, failure=failure_advice(attempt.failure))
            return self._finding("SchedulerError", facts)
        if not attempt.nodes:
            return self._finding("NoNodes", PendingFacts(named=self.named))
        if attempt.unsupported:
            return self._finding("UnsupportedConstraint", PendingFacts(field=attempt.unsupported))
        # A pod whose volumes are provisioned has a node already, and is bound when they are.
        volumes = attempt.volumes or (attempt.node and "; ".join(_to_provision(attempt)))
        if volumes:
            return self._finding("VolumesNotReady", PendingFacts(message=volumes))
        if attempt.node:
            return self._finding("NotScheduledYet", PendingFacts(node=attempt.node))
        return (
            self._of_shared_claim(attempt.diagnosis)
            or self._of_nodes(attempt)
            or self._of_devices(attempt.diagnosis)
        )

    def _unknown(self) -> Finding:
        condition = self.pod.condition(POD_SCHEDULED)
        if condition is None or not condition.message:
            return self._finding("NotScheduledYet")
        facts = PendingFacts(message=condition.message)
        return self._finding("Unschedulable", facts, reason=condition.reason)

    def _of_shared_claim(self, diagnosis: Diagnosis | None) -> Finding | None:
        """Find a claim that has its devices, and that the pod nevertheless cannot use."""
        if diagnosis is None or not diagnosis.blocked:
            return None
        blocked, sources = diagnosis.blocked[0], self.reader.sources
        facts = PendingFacts(claim=blocked.claim, device=blocked.device, nodes=blocked.nodes)
        if blocked.taints:
            origins = tuple(dict.fromkeys(taint.origin for taint in blocked.taints))
            taints = tuple(sources.taint(taint, taint.origin) for taint in blocked.taints)
            facts = replace(facts, sources=sources.of_all(origins), taints=taints)
            return self._finding("ClaimTainted", facts, origins)
        because = (f"ResourceClaim/{blocked.claim}",)
        claim = self.reader.snapshot.get(CLAIMS, key_from(blocked.claim))
        if claim is None:
            return self._finding("ClaimElsewhere", facts, because)
        devices = tuple(str(x.device) for x in self.reader.allocated(claim))
        users = tuple(consumer.name for consumer in claim.status.reserved_for)
        facts = replace(facts, devices=devices, users=users)
        remedies = self._tried(diagnosis, self._solutions(diagnosis)) if users else ()
        return self._finding("ClaimElsewhere", facts, because, remedies=remedies)

    # -- nodes ------------------------------------------------------------------------------------

    def _of_nodes(self, attempt: SchedulingTrial) -> Finding | None:
        """Find nodes that do not fit the pod, for which no devices are even evaluated."""
        rejections, diagnosis = attempt.rejections, attempt.diagnosis
        if (diagnosis is not None and diagnosis.reached) or not rejections:
            return None
        tried = self._tried(diagnosis, self._solutions(diagnosis))
        also, remedies = ((), tried) if tried else self._node_advice(rejections)
        shown = rejections[:_MAX_REASONS]
        facts = PendingFacts(
            nodes=attempt.nodes,
            node=rejections[0].names[0] if self.named and attempt.nodes == 1 else "",
            same=len(shown) == 1 and len(shown[0].names) == attempt.nodes,
            reasons=tuple(map(rejection_note, shown)),
            notes=tuple(note("NodeMessage", names=x.names, message=x.message) for x in rejections),
        )
        return self._finding(
            "NodesUnsuitable",
            facts,
            [f"Node/{name}" for name in rejected_nodes(rejections)][:_MAX_NODES],
            also=also,
            remedies=remedies,
            details=self._tables(diagnosis, rejections),
        )

    def _node_advice(self, rejections: Sequence[RejectedNodes]) -> _Advice:
        """Find what to look at, and what devices would lack if the first node fit the pod."""
        advice, trials = (
            tuple(replace(rejection_note(x), remedy=True) for x in rejections),
            self.trials,
        )
        if trials is None or any(x.is_constraint for x in rejections):
            return (), advice
        first = next(iter(trials.obstacles()), None)
        if first is None:
            exceeding = tuple(
                note("ExceedsNodes", named=self.named, **x._asdict()) for x in trials.exceeding()
            )
            remedies = tuple(replace(excess, remedy=True) for excess in exceeding)
            return exceeding, remedies or (note("NoNodeHasAll"),)
        change = Change(remove=tuple(trials.pods_on(first.node)), obstacles=first)
        diagnosis = trials.diagnosis_after(change, first.node)
        if diagnosis is None or diagnosis.blocked:
            return (), advice
        read = self._read(diagnosis)
        more = note("NotEnoughOnNode", node=first.node, shortage=read.shortage())
        return (more,), (*advice, *read.advice())

    # -- devices ----------------------------------------------------------------------------------

    def _of_devices(self, diagnosis: Diagnosis | None) -> Finding | None:
        """Find what each request lacks, and what would help."""
        if diagnosis is None:
            return None
        if (shared := self._of_shared_claim(diagnosis)) is not None:
            return shared
        tried, trials, read = self._solutions(diagnosis), self.trials, self._read(diagnosis)
        if not tried and trials is not None and (large := too_large(diagnosis, trials)):
            return self._too_large(read, large)
        reason = _reason(diagnosis, tried)
        rejections = self.attempt.rejections if self.attempt is not None else ()
        also, remedies = ((), self._tried(diagnosis, tried)) if tried else self._not_tried(read)
        notes = (
            *read.notes(),
            *also,
            *(self._out_of_reach() if reason == "NoDevices" else ()),
            *other_rejections(rejections),
            *(self._ahead() if tried else ()),
        )
        return self._finding(
            "InsufficientDevices",
            PendingFacts(shortage=read.shortage(reason), notes=notes),
            _because(diagnosis),
            reason=reason,
            remedies=remedies,
            details=self._tables(diagnosis, rejections),
        )

    def _read(self, diagnosis: Diagnosis) -> ShortageReader:
        return ShortageReader(diagnosis, self.specs, self.reader.sources)

    def _solutions(self, diagnosis: Diagnosis | None) -> tuple[Solution, ...]:
        return solutions(diagnosis, self.trials) if self.trials is not None else ()

    def _writer(self, diagnosis: Diagnosis | None) -> SolutionWriter:
        return SolutionWriter(diagnosis, self.reader.sources, self._users)

    def _tried(self, diagnosis: Diagnosis | None, tried: Sequence[Solution]) -> tuple[Note, ...]:
        writer = self._writer(diagnosis)
        return (*map(writer.solution, tried), *writer.immutable_claims(tried, self.pod))

    def _not_tried(self, read: ShortageReader) -> _Advice:
        """Find what to look at: what may help, if it cannot be tried, or what is behind it all."""
        diagnosis, advice = read.diagnosis, tuple(read.advice())
        if self.trials is None:
            return (), tuple(self._writer(diagnosis).untried(diagnosis)) or advice
        then = remaining(diagnosis, self.trials)
        if then is None:
            return (), advice
        rest = self._read(then[1])
        more = note("StillNotEnough", node=then[0], shortage=rest.shortage())
        return (more,), tuple(rest.advice()) or advice

    def _users(self, claim: str) -> tuple[str, ...]:
        allocated = self.reader.snapshot.get(CLAIMS, key_from(claim))
        pods = self.reader.snapshot.usage.consumers(allocated) if allocated is not None else ()
        return tuple(str(key_of(pod)) for pod in pods)

    def _too_large(
        self, read: ShortageReader, large: Sequence[tuple[RequestAccount, LargestNode]]
    ) -> Finding:
        requests = tuple(
            note(
                "LargeRequest",
                request=request.request,
                claim=request.claim,
                resource=read.resource(request),
                wanted=request.wanted,
                most=most.devices,
                node=most.node,
            )
            for request, most in large
        )
        return self._finding(
            "NodesTooSmall",
            PendingFacts(shortage=Note("NodesTooSmall", requests[0].values), notes=requests),
            remedies=tuple(replace(request, remedy=True) for request in requests),
            details=self._tables(read.diagnosis, ()),
        )

    def _out_of_reach(self) -> Iterator[Note]:
        """Yield the number of devices that are published for no node that exists."""
        if published := self.reader.snapshot.inventory.count_named(DeviceTaintSelector()):
            if self.named:
                yield note("OnOtherNodes", devices=published, names=self.named)
            else:
                yield note("OutOfReach", devices=published)

    def _ahead(self) -> Iterator[Note]:
        """Yield the pods before this one in the queue that request devices of the same classes."""
        classes = self._classes(self.pod)
        pods = sorted(self.reader.snapshot.of(PODS).values(), key=key_of)
        ahead = [
            pod.label
            for pod in pods
            if pod.needs_scheduling
            and _queue_order(pod) < _queue_order(self.pod)
            and classes & self._classes(pod)
        ]
        if ahead:
            yield note("PodsAhead", pods=ahead)

    def _classes(self, pod: Pod) -> set[str]:
        """Return the classes of devices that a pod still requests."""
        scheduler, snapshot = self.reader.scheduler, self.reader.snapshot
        extension = scheduler.extension(pod) if scheduler is not None else None
        claims = unallocated(resolve_claims(pod, snapshot).claims)
        claims += [extension.claim] if extension is not None else []
        specs = request_specs(claims, snapshot.inventory.class_)
        return {spec.device_class for spec in specs.values()}

    def _tables(
        self, diagnosis: Diagnosis | None, rejections: Sequence[RejectedNodes]
    ) -> tuple[Table, ...]:
        nodes = Table(
            "Nodes that do not fit the pod",
            ("reason", "nodes", "names"),
            tuple(
                (x.message, str(len(x.names)), enumerate_names(x.names, _MAX_NODES))
                for x in rejections
            ),
        )
        return tables(*(self._read(diagnosis).tables() if diagnosis is not None else ()), nodes)


def _to_provision(attempt: SchedulingTrial) -> list[str]:
    """Return the volumes that have to be provisioned, as text."""
    return [unknown(what) for what in attempt.unknown if isinstance(what, Provisioning)]


def _queue_order(pod: Pod) -> tuple[int, datetime]:
    """Return what the scheduling queue is ordered by; pods of one second are equal."""
    created = pod.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)
    return -(pod.spec.priority or 0), created


def _reason(diagnosis: Diagnosis, tried: Sequence[Solution]) -> str:
    """Return the reason of the cause: what helps against it, where trials have shown that."""
    reason = diagnosis.reason
    if reason not in ("DevicesTainted", "NotTogether", "CapacityTooSmall") or not tried:
        return reason
    # A taint on a device that is in use as well is in no diagnosis.
    tainted = any(request.taints for request in diagnosis.short)
    if tainted and any(solution.change.tolerate for solution in tried):
        return "DevicesTainted"
    return "DevicesInUse" if any(solution.change.deallocate for solution in tried) else reason


def _because(diagnosis: Diagnosis) -> Iterator[str]:
    for request in diagnosis.requests:
        yield from (taint.origin for taint in request.taints)
        yield from (f"ResourceClaim/{holder.claim}" for holder in request.holders[:4])
