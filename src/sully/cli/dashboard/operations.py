"""What runs after a change is confirmed, and how to pause, resume and undo it.

A drain runs in this process, with the viewer's client, until it ends or the viewer's last session
does; its state is on its rules, so it can be resumed here or with `sully drain`. Evictions of a
taint are executed by the eviction controller; they are paused by an annotation of the rules.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sully.cli.change.drain.args import drain_settings
from sully.cli.change.drain.cordons import prepare_cordon, take, write_cordon
from sully.cli.change.drain.drain import drain_request, execute_drain
from sully.cli.change.taint.args import parse_taint_args
from sully.cli.change.taint.taint import run_taint
from sully.cli.change.taint.writes import delete_rules, write_rules
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.dashboard.command_sessions import printed, session_of
from sully.cli.dashboard.proposals import Proposal, propose
from sully.cli.dashboard.queries import can_pause, evictions
from sully.cli.inspect.evictions.pause import set_pauses
from sully.client.transport import Key, UnreachableError
from sully.dashboard.app import Dashboard, RouteError
from sully.dashboard.viewers import Viewer
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.drain.rules import DRAIN
from sully.machinery.errors import ApiError, Unauthorized
from sully.planning.dryrun.changes import Remove
from sully.views.kinds import RULES

MAX_PROPOSALS = 16
MAX_OPERATIONS = 50
PROPOSAL_LIFE = timedelta(minutes=10)


@dataclass(slots=True, kw_only=True)
class Operation:
    """A change that was confirmed."""

    id: str
    action: str
    command: str
    began: datetime
    session: Session
    rules: Sequence[str] = ()
    pods: int = 0
    """How many pods the plan evicts."""
    pausable: bool = True
    state: str = "done"
    """`running`, `paused`, `done`, `stopped`, `failed` or `undone`."""
    lines: list[str] = field(default_factory=list)
    task: asyncio.Task[Any] | None = None
    evictions: Sequence[dict[str, Any]] = ()
    """The progress of its rules, of a taint that evicts pods."""

    def as_document(self) -> dict[str, Any]:
        """Return it for the page."""
        return {
            "id": self.id,
            "action": self.action,
            "command": self.command,
            "began": self.began,
            "rules": self.rules,
            "pods": self.pods,
            "pausable": self.pausable,
            "state": self.state,
            "lines": (self.lines + printed(self.session))[-40:],
            "evictions": self.evictions,
        }

    def follow(self, progress: Mapping[str, dict[str, Any]]) -> None:
        """Set the state of a taint that evicts pods: the eviction controller executes it."""
        evictions = [progress[name] for name in self.rules if name in progress]
        if evictions:
            self.state = _state_of({eviction["state"] for eviction in evictions})
        elif self.evictions:
            # Another client has deleted its rules.
            self.state = "undone"
        self.evictions = evictions or self.evictions


def _state_of(states: set[str]) -> str:
    if states & {"evicting", "waiting", "terminating", "looping"}:
        return "running"
    return "paused" if "paused" in states else "done"


def _proposals(viewer: Viewer) -> dict[str, Proposal]:
    proposals: dict[str, Proposal] = viewer.state.setdefault("proposals", {})
    return proposals


def _operations(viewer: Viewer) -> dict[str, Operation]:
    operations: dict[str, Operation] = viewer.state.setdefault("operations", {})
    return operations


def _next_id(viewer: Viewer) -> str:
    viewer.state["last"] = viewer.state.get("last", 0) + 1
    return str(viewer.state["last"])


async def _forget_old_proposals(viewer: Viewer) -> None:
    """Delete proposals when they are too old, until there are none: each has a snapshot."""
    proposals = _proposals(viewer)
    while proposals:
        id_, oldest = next(iter(proposals.items()))
        left = (oldest.made + PROPOSAL_LIFE - viewer.clock.now()).total_seconds()
        if left > 0:
            await viewer.clock.sleep(left)
        else:
            del proposals[id_]
    del viewer.state["forgetting"]


async def plan(viewer: Viewer, body: Mapping[str, Any], dashboard: Dashboard) -> Any:
    """Plan a change; the answer has an ID to confirm it by."""
    proposal = await propose(viewer, body)
    proposals, id_ = _proposals(viewer), _next_id(viewer)
    proposals[id_] = proposal
    while len(proposals) > MAX_PROPOSALS:
        del proposals[next(iter(proposals))]
    if "forgetting" not in viewer.state:
        forget = partial(_forget_old_proposals, viewer)
        viewer.state["forgetting"] = dashboard.viewers.start(viewer, forget)
    return {"id": id_, **proposal.as_document()}


async def apply(viewer: Viewer, body: Mapping[str, Any], dashboard: Dashboard) -> Any:
    """Do what was planned, after the confirmation that the command line requires."""
    proposal = _proposals(viewer).get(str(body.get("id")))
    if proposal is None or viewer.clock.now() >= proposal.made + PROPOSAL_LIFE:
        raise RouteError("the plan is too old; make a new one")
    typed = proposal.typed
    if typed is not None and str(body.get("confirm", "")).strip() != str(typed[0]):
        raise RouteError(f"type the number of {typed[1]} ({typed[0]}) to continue")
    # It is done at most once.
    del _proposals(viewer)[str(body.get("id"))]
    operation = Operation(
        id=_next_id(viewer),
        action=proposal.action,
        command=proposal.command,
        began=viewer.clock.now(),
        session=proposal.session,
        pods=len(proposal.plan.caused),
    )
    before = len(printed(proposal.session))
    try:
        await _WRITES[proposal.action](viewer, proposal, operation, dashboard)
    except (ApiError, CommandError, UnreachableError) as error:
        if isinstance(error, Unauthorized):
            raise
        # What was written before the failure is printed.
        text = getattr(error, "message", "") or str(error)
        raise RouteError("\n".join((text, *printed(proposal.session)[before:]))) from error
    operations = _operations(viewer)
    operations[operation.id] = operation
    while len(operations) > MAX_OPERATIONS:
        del operations[next(iter(operations))]
    return operation.as_document()


async def _write_cordon(_: Viewer, proposal: Proposal, operation: Operation, __: Dashboard) -> None:
    if proposal.cordon is None:
        raise TypeError("a cordon has devices")
    await write_cordon(proposal.session, proposal.cordon)
    operation.rules = proposal.cordon.names


async def _start_drain(
    viewer: Viewer, proposal: Proposal, operation: Operation, dashboard: Dashboard
) -> None:
    if proposal.cordon is None or proposal.request is None:
        raise TypeError("a drain has devices")
    await write_cordon(proposal.session, proposal.cordon)
    operation.rules = proposal.cordon.names
    run = partial(execute_drain, proposal.session, proposal.cordon, proposal.request)
    _run(viewer, operation, run, dashboard)


def _run(
    viewer: Viewer,
    operation: Operation,
    run: Callable[[], Awaitable[int]],
    dashboard: Dashboard,
) -> None:
    operation.state = "running"

    async def work() -> None:
        try:
            code = await run()
            operation.state = "done" if code == 0 else "stopped"
        except asyncio.CancelledError:
            if operation.state == "running":
                operation.state = "paused"
            raise
        except (CommandError, ApiError, UnreachableError) as error:
            operation.state = "failed"
            operation.session.warn(f"error: {error}")

    operation.task = dashboard.viewers.start(viewer, work)


async def _write_taint(
    viewer: Viewer, proposal: Proposal, operation: Operation, _: Dashboard
) -> None:
    operation.pausable = operation.pods > 0 and can_pause(viewer)
    await write_rules(proposal.session, proposal.snapshot, proposal.bodies)
    operation.rules = [str(body["metadata"]["name"]) for body in proposal.bodies]
    if any(body["spec"]["taint"]["effect"] in EVICTING_EFFECTS for body in proposal.bodies):
        operation.state = "running"


async def _delete_rules(_: Viewer, proposal: Proposal, __: Operation, ___: Dashboard) -> None:
    await delete_rules(proposal.session, proposal.deletions)


async def _taint_clusters(_: Viewer, proposal: Proposal, __: Operation, ___: Dashboard) -> None:
    # It plans again what was confirmed: clusters are written at the version that is read.
    await run_taint(proposal.session, parse_taint_args(proposal.session.options.arguments))


_WRITES = {
    "cordon": _write_cordon,
    "drain": _start_drain,
    "taint": _write_taint,
    "delete": _delete_rules,
    "taint-cluster": _taint_clusters,
}


async def operations(viewer: Viewer, query: Any) -> Any:
    """Return what was done in this session, the newest first."""
    known = _operations(viewer).values()
    evicting = [x for x in known if x.action == "taint" and x.state != "undone"]
    if evicting:
        progress = {x["rule"]: x for x in (await evictions(viewer, query))["evictions"]}
        for operation in evicting:
            operation.follow(progress)
    return {"operations": [x.as_document() for x in reversed(known)]}


async def control(viewer: Viewer, body: Mapping[str, Any], dashboard: Dashboard) -> Any:
    """Pause, resume or undo an operation."""
    operation = _operations(viewer).get(str(body.get("id")))
    if operation is None:
        raise RouteError("this operation is not known any more; see Rules")
    match body.get("verb"):
        case "pause" if operation.action == "drain":
            await _stop(operation)
        case "resume" if operation.action == "drain":
            await _resume_drain(viewer, operation, dashboard)
        case "pause" | "resume" as verb:
            await _set_pause(viewer, verb, operation.rules, body)
            operation.state = "paused" if verb == "pause" else "running"
        case "undo":
            await _stop(operation)
            deletions = [Remove(RULES, Key("", name)) for name in operation.rules]
            await delete_rules(operation.session, deletions)
            operation.state = "undone"
        case _:
            raise RouteError("unknown verb (one of: pause, resume, undo)")
    return operation.as_document()


async def _stop(operation: Operation) -> None:
    """Stop a drain that runs: it is paused then."""
    task = operation.task
    if task is not None and not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if operation.state == "running":
            # It was cancelled before it began.
            operation.state = "paused"


async def _resume_drain(viewer: Viewer, operation: Operation, dashboard: Dashboard) -> None:
    if operation.state == "running":
        raise RouteError("the drain is running")
    session = operation.session
    cordon = await prepare_cordon(session, await take(session), DRAIN)
    request = drain_request(session, cordon, drain_settings(session.options))
    await write_cordon(session, cordon)
    _run(viewer, operation, partial(execute_drain, session, cordon, request), dashboard)


async def _set_pause(
    viewer: Viewer, verb: str, rules: Sequence[str], body: Mapping[str, Any]
) -> list[str]:
    reason = {"reason": str(body.get("reason") or "")} if verb == "pause" else {}
    session = session_of(viewer, "evictions", reason, (verb, *rules))
    await set_pauses(session)
    return printed(session)


async def pause(viewer: Viewer, body: Mapping[str, Any], _: Dashboard) -> Any:
    """Pause or resume the evictions of rules."""
    verb, names = str(body.get("verb")), [str(name) for name in body.get("rules") or ()]
    if verb not in ("pause", "resume") or not names:
        raise RouteError("a verb (pause or resume) and rules are required")
    return {"lines": await _set_pause(viewer, verb, names, body)}
