"""Pods that are scheduled to devices after a plan was made, which may be confirmed minutes later.

Pods and claims are read again after the question: more pods than were confirmed need a second one.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sully.cli.change.output import refuse_loop, report, text_stream
from sully.cli.change.plan.simulation import make_plan
from sully.cli.client.session import Session
from sully.cli.output.spinner import spinner
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sully.cli.change.confirm import Question
    from sully.domain.devices.pools import DeviceId
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

_FRESH = timedelta(seconds=1)
"""Without a question, pods are read again if the plan is older than this."""
_MOST = 5
"""How many pods are named."""
_STILL_LATER = "note: pods that are scheduled there before the rule takes effect are evicted, too"


async def refreshed(
    session: Session, snapshot: "Snapshot", *, interactive: bool = False
) -> "Snapshot | None":
    """Return a snapshot of pods and claims now; None if it is new and nobody was asked."""
    from sully.views.kinds import CLAIMS
    from sully.views.snapshot.kinds import PODS
    from sully.views.snapshot.loading import load

    now = session.clock.now()
    if not interactive and now - snapshot.taken <= _FRESH:
        return None
    kinds = (PODS, CLAIMS)
    try:
        with spinner(lambda: "Reading pods and claims"):
            newer = await load(session.transport, kinds, now=now, at_least=session.namespace)
    except asyncio.CancelledError:
        report(session, "Nothing changed.")
        raise
    return snapshot.updated(newer)


def pods_on(snapshot: "Snapshot", devices: "Collection[DeviceId]") -> dict[str, str]:
    """Return the pods with a claim for one of these devices: their names by uid."""
    pods: dict[str, str] = {}
    for device in devices:
        for key in snapshot.usage.pods_on(device.pool_id, (device.device,)):
            pod = snapshot.usage.pod(key)
            if pod is not None:
                pods[pod.metadata.uid] = str(key)
    return pods


def evicted_by(snapshot: "Snapshot", plan: "Plan") -> dict[str, str]:
    """Return the pods that a plan evicts: their names by uid."""
    from sully.client.transport import Key

    keys = [Key(eviction.namespace, eviction.name) for eviction in plan.caused]
    pods = {key: snapshot.usage.pod(key) for key in keys}
    return {pod.metadata.uid: str(key) for key, pod in pods.items() if pod is not None}


def later(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the pods that are only there now."""
    return sorted(name for uid, name in now.items() if uid not in before)


def later_text(pods: Sequence[str]) -> str:
    """Return which pods were scheduled after a plan was made."""
    more = f" and {len(pods) - _MOST} more" if len(pods) > _MOST else ""
    were = "was" if len(pods) == 1 else "were"
    what = f"{number_of(len(pods), 'pod')} {were} scheduled to these devices since the plan"
    return f"note: {what}: {', '.join(pods[:_MOST])}{more}"


async def confirmed_again(
    session: Session, plan: "Plan", question: "Question", pods: Sequence[str], note: str = ""
) -> int | None:
    """Report pods that a new plan also evicts, and ask again; return the exit code if any."""
    from sully.cli.change.confirm import refusal

    report(session, later_text(pods))
    if note:
        report(session, note)
    if plan.eviction_loops and not session.options.force:
        refuse_loop(session)
    if session.options.yes:
        return None
    if refused := await refusal(plan, question, text_stream(session), briefly=True):
        report(session, refused)
        return 1
    return None


async def confirm_later_pods(
    session: Session,
    snapshot: "Snapshot",
    plan: "Plan",
    changes: "Sequence[Change]",
    devices: "Collection[DeviceId]",
    question: "Callable[[Plan], Question]",
) -> "tuple[Snapshot, Plan, int | None]":
    """Ask again while more pods would be evicted than were confirmed.

    Return the newest pods and plan, and the exit code if any.
    """
    interactive = not session.options.yes
    while (newer := await refreshed(session, snapshot, interactive=interactive)) is not None:
        before, known = evicted_by(snapshot, plan), pods_on(snapshot, devices)
        snapshot = newer
        if not later(known, pods_on(snapshot, devices)):
            break
        plan = make_plan(session, snapshot, changes)
        pods = later(before, evicted_by(snapshot, plan))
        if not pods:
            break
        done = await confirmed_again(session, plan, question(plan), pods, _STILL_LATER)
        if done is not None or not interactive:
            return snapshot, plan, done
    return snapshot, plan, None
