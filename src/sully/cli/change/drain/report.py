"""What `sully drain` prints: its limits, how far it is, and how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TextIO

from sully.cli.change.drain.args import same_command, undo_command
from sully.cli.change.progress import FollowedEviction
from sully.cli.change.progress_bar import BarState, ProgressBar
from sully.cli.client.session import Session
from sully.cli.output.formatting import duration
from sully.domain.drain.messages import DrainOutcome
from sully.domain.planning.replacements import SIMULATED_MARK
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.drain.messages import DrainPod, DrainProgress, DrainSettings, Stop

_MOST = 3
"""How many pods are named."""


def limits_text(settings: "DrainSettings", devices: int, pods: int) -> str:
    """Return what is drained and how, in two sentences."""
    use, them = "uses" if pods == 1 else "use", "it" if devices == 1 else "them"
    what = f"{number_of(devices, 'device')} to drain; {number_of(pods, 'pod')} {use} {them}."
    if not settings.evicts:
        return f"{what} No pods are evicted: the drain waits until they have finished."
    parts = ["Evictions honor PodDisruptionBudgets"]
    rate = settings.rate
    if rate is not None:
        one = rate.period == timedelta(seconds=1)
        period = "second" if one else duration(rate.period.total_seconds())
        burst = f", after a burst of {rate.burst}" if rate.burst > 1 else ""
        parts.append(f"at most {rate.count} per {period}{burst}")
        wait = rate.interval.total_seconds() * max(0, pods - rate.burst)
        if wait >= 60:
            parts.append(f"at least {duration(wait)} in all")
    most = settings.max_unavailable
    if most is not None:
        pods_of = " of the pods" if isinstance(most, str) else ""
        parts.append(f"at most {most}{pods_of} without a Ready replacement")
    if settings.use_no_execute and settings.timeout is not None:
        after = duration(settings.timeout.total_seconds())
        parts.append(f"budgets of pods that remain after {after} are broken (NoExecute)")
    return f"{what} {'; '.join(parts)}."


def stop_text(stop: "Stop") -> str:
    """Return why a drain ended before all pods were evicted, and what to do."""
    from sully.domain.drain.texts import outcome_text as text_of

    text = text_of(stop, _names(stop.pods))
    match stop.outcome:
        case DrainOutcome.REPLACEMENT_PENDING | DrainOutcome.REPLACEMENT_NOT_READY:
            return f"{text}{_explain(stop.pods)}"
        case DrainOutcome.NOT_RECREATED:
            namespace, _, owner = stop.workload.partition("/")
            kind, _, name = owner.partition("/")
            see = f"kubectl describe -n {namespace} {kind.lower()} {name}"
            return f"{text}\n  to see why:  {see}"
        case DrainOutcome.EVICTION_LOOP:
            hint = "remove the toleration, or scale the owner down, then run the drain again"
            return f"{text}\n  {hint}"
        case _:
            return text


def _names(pods: "Sequence[DrainPod]") -> str:

    # In a plan, replacements have the name of the pod that they replace, and a mark.
    names = list(dict.fromkeys(str(pod).partition(SIMULATED_MARK)[0] for pod in pods))
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _explain(pods: "Sequence[DrainPod]") -> str:

    shown = [pod for pod in pods if SIMULATED_MARK not in pod.name]
    return f"\n  to see why:  sully explain pod {shown[0]}" if shown else ""


def refusals_text(progress: "DrainProgress") -> list[str]:
    """Return why the server refuses evictions; many pods often have one budget."""
    return sorted(set(progress.refused.values()))[:_MOST]


def _waiting(progress: "DrainProgress") -> list[str]:
    """Return how many replacements are Pending, and how many are starting."""
    pending = sum(pod.unschedulable for pod in progress.waiting)
    starting = len(progress.waiting) - pending
    return [
        f"{count} {state}"
        for count, state in ((pending, "Pending"), (starting, "not Ready yet"))
        if count
    ]


def outcome_text(session: Session, progress: "DrainProgress", stop: "Stop | None") -> str:
    """Return the end of a drain; without a stop it was interrupted."""

    done = stop is not None and stop.outcome is DrainOutcome.DONE
    lines = [_counts(progress, done=done, evicts=not session.options.when_idle)]
    if stop is not None and not done:
        lines.insert(0, stop_text(stop))
        lines += [f"  {text}" for text in refusals_text(progress)]
    elif progress.waiting:
        first = max(progress.waiting, key=lambda pod: pod.unschedulable)
        lines.append(f"  to see why:  sully explain pod {first}")
    if stop is not None and stop.outcome is DrainOutcome.UNCORDONED:
        return "\n".join(lines)
    undo = undo_command(session.options)
    if done:
        return "\n".join([*lines, f"  to undo:  {undo}"])
    lines.append(cordoned_text(session))
    blocked = stop is not None and stop.outcome is DrainOutcome.TIMED_OUT and progress.refused
    if blocked and session.options.then != "NoExecute":
        lines.append("  to resume, and break budgets after --timeout: add --then NoExecute")
    return "\n".join([*lines, f"  to undo:    {undo}"])


def cordoned_text(session: Session) -> str:
    """Return that the devices stay cordoned, and how to resume."""
    return f"The devices stay cordoned.\n  to resume:  {same_command(session)}"


def _counts(progress: "DrainProgress", *, done: bool, evicts: bool) -> str:
    """Return what became of the pods, in a sentence."""
    if not evicts and not progress.evicted:
        left = number_of(progress.remaining, "pod")
        have = "has" if progress.remaining == 1 else "have"
        return "No pod uses the devices." if done else f"{left} {have} not finished."
    parts = [f"{number_of(progress.evicted, 'pod')} evicted"]
    if progress.evicted:
        parts.append(f"{progress.ready} running again")
    parts += _waiting(progress)
    if progress.terminating:
        parts.append(f"{progress.terminating} still terminating")
    if progress.remaining:
        parts.append(f"{progress.remaining} not evicted")
    return f"{', '.join(parts)}."


@dataclass(frozen=True, slots=True)
class DrainBarState(BarState):
    """How far a drain is, for the bar."""

    more: str = ""
    evicts: bool = True


class DrainBar(ProgressBar):
    """The progress of a drain."""

    def __init__(self, session: Session, out: TextIO) -> None:
        super().__init__(session, FollowedEviction((), None), out)
        self._session = session
        self._reported: set[str] = set()
        self._named = 0
        """How many evicted pods were printed."""

    def show_waiting(self, text: str) -> None:
        """Print once why the drain waits."""
        if text not in self._reported:
            self._reported.add(text)
            self.close()
            self._session.warn(f"waiting: {text}")

    def show_evicted(self, pods: "Sequence[DrainPod]") -> None:
        """Print each evicted pod once, above the bar."""
        for pod in pods[self._named :]:
            self._named += 1
            self.line(f"pod/{pod.name} evicted from {pod.namespace} namespace")

    def show_drain(self, progress: "DrainProgress", *, evicts: bool) -> None:
        """Draw how far the drain is, if that has changed."""
        for text in refusals_text(progress):
            self.show_waiting(text)
        more = []
        if progress.refused:
            more.append(f"{len(progress.refused)} blocked by a budget")
        if progress.terminating:
            more.append(f"{progress.terminating} terminating")
        more += _waiting(progress)
        state = DrainBarState(
            evicts=evicts,
            observed=True,
            pending=progress.remaining,
            evicted=progress.evicted,
            paused=False,
            more="".join(f", {text}" for text in more),
        )
        self.show(state)

    def text(self, state: BarState) -> str:
        """Return how far it is, as text."""
        more = state.more if isinstance(state, DrainBarState) else ""
        if isinstance(state, DrainBarState) and not state.evicts and not state.evicted:
            return f"waiting for {number_of(state.pending, 'pod')} to finish{more}"
        return f"{state.evicted}/{state.pending + state.evicted} pods evicted{more}"
