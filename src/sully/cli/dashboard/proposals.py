"""Changes that the page proposes: `cordon`, `drain`, `taint`, and deleting rules, with their plans.

A proposal is prepared once. What is confirmed is what was planned: the same rules, from the same
snapshot.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sully.cli.change.confirm import number_to_type
from sully.cli.change.drain.args import drain_settings
from sully.cli.change.drain.cordons import Cordon, prepare_cordon, take
from sully.cli.change.drain.drain import (
    cordon_changes,
    drain_request,
    simulate_drain,
)
from sully.cli.change.drain.report import limits_text, stop_text
from sully.cli.change.drain.users import data_risks, refuse_unmanaged, users_of
from sully.cli.change.large_changes import large_change_reasons, large_change_text
from sully.cli.change.plan.manifests import Manifest
from sully.cli.change.plan.proposals import proposed
from sully.cli.change.plan.simulation import make_plan
from sully.cli.change.taint.args import parse_taint_args, refuse_useless_flags
from sully.cli.change.taint.rules import rule_bodies, selected_devices, take_devices
from sully.cli.change.taint.storable import as_storable
from sully.cli.client.session import Session
from sully.cli.dashboard.command_sessions import command_line, printed, session_of
from sully.client.transport import Key
from sully.dashboard.app import RouteError
from sully.dashboard.viewers import Viewer
from sully.domain.devices.pools import PoolId, device_id
from sully.domain.devices.taints import NONE
from sully.domain.drain.messages import DrainOutcome
from sully.domain.drain.rules import CORDON, DRAIN
from sully.domain.planning.report import Plan, document, group_by_owner
from sully.planning.dryrun.changes import Change, Remove
from sully.planning.simulation.drain import DrainRequest
from sully.views.kinds import RULES
from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_COMMON = ("reason", "for")
_DRAIN = ("rate", "max-unavailable", "timeout", "one-at-a-time", "when-idle", "force")
_MORE_DRAIN = ("ignore-daemonsets",)


@dataclass(slots=True, kw_only=True)
class Proposal:
    """A change that can be confirmed."""

    action: str
    command: str
    """The command line that does the same."""
    session: Session
    snapshot: Snapshot
    plan: Plan
    made: datetime
    bodies: Sequence[Obj] = ()
    """The rules to write."""
    cordon: Cordon | None = None
    request: DrainRequest | None = None
    deletions: Sequence[Remove] = ()
    cluster_changes: Sequence[Any] = ()
    notes: list[str] = field(default_factory=list)
    large: tuple[str, ...] = ()

    @property
    def typed(self) -> tuple[int, str] | None:
        """Return which number of what has to be typed."""
        return number_to_type(self.plan)

    def as_document(self) -> Obj:
        """Return the plan for the page."""
        typed = self.typed
        owners = [
            {
                "namespace": owner.namespace,
                "owner": owner.owner,
                "pods": len(owner.evictions),
                "first": owner.first,
                "last": owner.last,
                "outcomes": {key.value: count for key, count in owner.outcomes.items()},
                "nodes": owner.candidates,
            }
            for owner in group_by_owner(self.plan.caused)
        ]
        return {
            "action": self.action,
            "command": self.command,
            "plan": document(self.plan),
            "owners": owners,
            "caused": len(self.plan.caused),
            "type": {"count": typed[0], "thing": typed[1]} if typed is not None else None,
            "large": large_change_text(self.large) if self.large else "",
            "notes": self.notes + printed(self.session),
        }


async def propose(viewer: Viewer, body: Mapping[str, Any]) -> Proposal:
    """Prepare a change and plan it."""
    action = body.get("action")
    if action not in ACTIONS:
        raise RouteError(f"unknown action (one of: {', '.join(ACTIONS)})")
    return await ACTIONS[action](viewer, body)


def _arguments(viewer: Viewer, body: Mapping[str, Any]) -> list[str]:
    """Return the devices as names; a pool that is selected as a whole is one name."""
    named = body.get("devices")
    if not isinstance(named, list) or not named:
        raise RouteError("no device is selected")
    pools: dict[PoolId, set[str]] = {}
    for text in map(str, named):
        id_ = device_id(text)
        pools.setdefault(id_.pool_id, set()).add(id_.device)
    return [
        "device",
        *(word for pool in sorted(pools) for word in _pool_arguments(viewer, pool, pools)),
    ]


def _pool_arguments(
    viewer: Viewer, pool: PoolId, selected: Mapping[PoolId, set[str]]
) -> Iterable[str]:
    known = viewer.live.names_in(pool)
    if known and known <= selected[pool]:
        return (f"{pool.driver}/{pool.pool}/*",)
    return sorted(f"{pool.driver}/{pool.pool}/{name}" for name in selected[pool])


def _flags(body: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    flags = body.get("flags")
    values = flags if isinstance(flags, dict) else {}
    known = tuple(names)
    for name, value in values.items():
        if name not in known or not isinstance(value, str | bool | int):
            raise RouteError(f'unknown flag "{name}"')
    return {name: values[name] for name in known if name in values}


def _session(
    viewer: Viewer, command: str, flags: Mapping[str, Any], arguments: Sequence[str]
) -> Session:
    return session_of(viewer, command, {**flags, "yes": True}, arguments)


# -- cordon and drain -----------------------------------------------------------------------------


async def _cordon(viewer: Viewer, body: Mapping[str, Any]) -> Proposal:
    flags, arguments = _flags(body, _COMMON), _arguments(viewer, body)
    session = _session(viewer, "cordon", flags, arguments)
    snapshot = await take(session)
    cordon = await prepare_cordon(session, snapshot, CORDON)
    changes = await cordon_changes(session, cordon)
    return Proposal(
        action="cordon",
        command=command_line("cordon", flags, arguments),
        session=session,
        snapshot=snapshot,
        plan=await viewer.work.run(make_plan, session, snapshot, changes),
        made=viewer.clock.now(),
        cordon=cordon,
        large=large_change_reasons(snapshot, cordon.devices) if cordon.new else (),
        notes=[] if cordon.new else ["These devices are already cordoned."],
    )


async def _drain(viewer: Viewer, body: Mapping[str, Any]) -> Proposal:
    flags = _flags(body, (*_COMMON, *_DRAIN, *_MORE_DRAIN))
    arguments = _arguments(viewer, body)
    session = _session(viewer, "drain", flags, arguments)
    settings = drain_settings(session.options)
    snapshot = await take(session)
    cordon = await prepare_cordon(session, snapshot, DRAIN)
    request = drain_request(session, cordon, settings)
    refuse_unmanaged(session, cordon, request)
    changes = await cordon_changes(session, cordon)
    planned, plan = await viewer.work.run(simulate_drain, session, cordon, request, changes)
    notes = [limits_text(settings, len(cordon.devices), len(users_of(cordon, request)))]
    notes += [f"warning: {risk}" for risk in data_risks(session, cordon, request)]
    stop = planned.stop
    if stop is not None and stop.outcome is not DrainOutcome.DONE:
        notes.append(f"The drain would stop early. {stop_text(stop)}")
    return Proposal(
        action="drain",
        command=command_line("drain", flags, arguments),
        session=session,
        snapshot=snapshot,
        plan=plan,
        made=viewer.clock.now(),
        cordon=cordon,
        request=request,
        large=large_change_reasons(snapshot, cordon.devices) if cordon.new else (),
        notes=notes,
    )


# -- taints ---------------------------------------------------------------------------------------


def _taint_text(body: Mapping[str, Any]) -> str:
    key, value, effect = (str(body.get(name) or "") for name in ("key", "value", "effect"))
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


async def _taint(viewer: Viewer, body: Mapping[str, Any]) -> Proposal:
    flags = _flags(body, (*_COMMON, "rate", "name"))
    arguments = [*_arguments(viewer, body), _taint_text(body)]
    session = _session(viewer, "taint", flags, arguments)
    args = parse_taint_args(session.options.arguments)
    refuse_useless_flags(session.options, args)
    snapshot = await take_devices(session, args)
    selection = await selected_devices(session, snapshot, args)
    bodies = await as_storable(session, snapshot, rule_bodies(session, snapshot, args, selection))
    changes: list[Change] = list(await proposed(session, snapshot, map(Manifest, bodies)))
    informs = all(taint.effect == NONE for taint in args.sets)
    devices = selection.devices if selection is not None and not informs else ()
    return Proposal(
        action="taint",
        command=command_line("taint", flags, arguments),
        session=session,
        snapshot=snapshot,
        plan=await viewer.work.run(make_plan, session, snapshot, changes),
        made=viewer.clock.now(),
        bodies=bodies,
        large=large_change_reasons(snapshot, devices),
    )


async def _delete(viewer: Viewer, body: Mapping[str, Any]) -> Proposal:
    """Delete rules: undo a cordon, a drain or a taint."""
    names = [str(name) for name in body.get("rules") or ()]
    if not names:
        raise RouteError("no rule is selected")
    session = _session(viewer, "cordon", {}, ["device", "*"])
    snapshot = await take(session)
    for name in names:
        if snapshot.get(RULES, Key("", name)) is None:
            raise RouteError(f'devicetaintrule "{name}" not found')
    deletions = [Remove(RULES, Key("", name)) for name in names]
    return Proposal(
        action="delete",
        command=f"kubectl delete devicetaintrule {' '.join(names)}",
        session=session,
        snapshot=snapshot,
        plan=await viewer.work.run(make_plan, session, snapshot, deletions),
        made=viewer.clock.now(),
        deletions=deletions,
    )


async def _taint_cluster(viewer: Viewer, body: Mapping[str, Any]) -> Proposal:
    from sully.cli.change.taint.clusters import cluster_changes
    from sully.cli.change.taint.rules import take_fleet

    names = [str(name) for name in body.get("clusters") or ()]
    flags = _flags(body, _COMMON)
    dash = "-" if body.get("remove") else ""
    arguments = ["cluster", *names, _taint_text(body) + dash]
    session = _session(viewer, "taint", flags, arguments)
    args = parse_taint_args(session.options.arguments)
    refuse_useless_flags(session.options, args)
    snapshot = await take_fleet(session)
    changes = cluster_changes(session, snapshot, args)
    return Proposal(
        action="taint-cluster",
        command=command_line("taint", flags, arguments),
        session=session,
        snapshot=snapshot,
        plan=await viewer.work.run(make_plan, session, snapshot, changes),
        made=viewer.clock.now(),
        cluster_changes=changes,
    )


ACTIONS: dict[str, Callable[[Viewer, Mapping[str, Any]], Awaitable[Proposal]]] = {
    "cordon": _cordon,
    "drain": _drain,
    "taint": _taint,
    "delete": _delete,
    "taint-cluster": _taint_cluster,
}
