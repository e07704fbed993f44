"""What the pages ask: the documents of `devices`, `rules`, `evictions`, `history` and `explain`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sully.cli.change.maintenance.printer import document as maintenance_document
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError
from sully.cli.dashboard.command_sessions import session_of
from sully.cli.inspect.devices.printer import document as device_document
from sully.cli.inspect.devices.printer import value_of
from sully.cli.inspect.evictions.command import progress_in
from sully.cli.inspect.evictions.printer import document as eviction_document
from sully.cli.inspect.explain import Loads, explanation_of, objects_of
from sully.cli.inspect.history.command import entries_in, kinds_for, refuse_missing_records
from sully.cli.inspect.history.printer import document as history_document
from sully.cli.inspect.policies.printer import document as policy_document
from sully.cli.inspect.policies.printer import steps_text as policy_steps
from sully.cli.inspect.policies.printer import taint_text as policy_taint
from sully.cli.inspect.rules_printer import document as source_document
from sully.cli.selection.args import SelectionArgs
from sully.cli.selection.device_selection import resolve
from sully.client.transport import Key
from sully.dashboard.app import RouteError
from sully.dashboard.http import HttpError
from sully.dashboard.viewers import Viewer
from sully.domain.devices.pools import DeviceId, device_id
from sully.domain.devices.taints import EFFECTS
from sully.explain.facts.devices.candidate_pods import MOST_PODS, CandidatePod, find_candidate_pods
from sully.explain.render import render_note
from sully.views.kinds import (
    CLAIMS,
    CLASSES,
    DEVICE_POLICIES,
    MAINTENANCES,
    PATCHES,
    RULES,
    SLICES,
    TAINT_RECORDS,
)
from sully.views.snapshot.kinds import NODES, PODS
from sully.views.snapshot.snapshot import Snapshot
from sully.views.taint_sources import taint_sources

Query = Mapping[str, list[str]]
MAX_EXPRESSIONS = 8
"""Each is evaluated for every device."""
_DEVICE_KINDS = (SLICES, CLASSES, RULES, PATCHES, CLAIMS)


def first(query: Query, name: str) -> str:
    """Return a parameter, empty if there is none."""
    return query.get(name, [""])[0]


async def select(viewer: Viewer, query: Query) -> Any:
    """Return the devices that filters select, as `sully devices` with the same flags."""
    args = SelectionArgs(
        classes=tuple(filter(None, query.get("class", ()))),
        expressions=tuple(filter(None, query.get("cel", ()))),
        labels=first(query, "label"),
        uuids=tuple(filter(None, query.get("uuid", ()))),
    )
    if len(args.expressions) > MAX_EXPRESSIONS:
        raise HttpError(400, f"more than {MAX_EXPRESSIONS} expressions (cel)")
    if args.is_empty:
        raise RouteError("no filter is set")
    snapshot = viewer.live.snapshot((*_DEVICE_KINDS, NODES))
    try:
        selection = await viewer.work.run(resolve, snapshot, args)
    except CommandError as error:
        return {"devices": [], "message": str(error).partition("\n")[0]}
    return {"devices": [str(device) for device in selection.devices]}


async def attributes(viewer: Viewer, query: Query) -> Any:
    """Return the names of all attributes, or what value of one attribute each device has."""
    name = first(query, "name")
    return await viewer.work.run(_attributes, viewer.live.snapshot(_DEVICE_KINDS), name)


def _attributes(snapshot: Snapshot, name: str) -> dict[str, Any]:
    inventory = snapshot.inventory
    devices = [device for pool in inventory.pools() for device in inventory.devices(pool).values()]
    if not name:
        return {"names": sorted({x for device in devices for x in device.attributes})}
    values = {}
    for device in devices:
        value = device.attributes.get(name)
        if value is not None:
            shown = value_of(value)
            values[str(device.id)] = str(shown).lower() if isinstance(shown, bool) else str(shown)
    return {"values": values}


async def device(viewer: Viewer, query: Query) -> Any:
    """Return everything about one device, with the sources of its taints."""
    id_ = device_id(first(query, "id"))
    view = viewer.live.device(id_)
    if view is None:
        raise RouteError(f'device "{id_}" not found')
    classes = viewer.live.classes_of(view)
    snapshot = viewer.live.snapshot((*_DEVICE_KINDS, PODS, NODES, TAINT_RECORDS))
    sources = await viewer.work.run(taint_sources, snapshot)
    origins = {
        name: {"createdBy": source.created_by, "description": source.reason}
        for source in sources
        for name in source.objects
    }
    return {
        **device_document(view),
        "id": str(view.id),
        "classes": classes,
        "origins": origins,
        **await _candidates(viewer, id_, classes),
    }


async def _candidates(viewer: Viewer, id_: DeviceId, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return the Pending pods that request a class of the device: could they run here?"""
    pods = [
        Key(pod["namespace"], pod["name"])
        for pod in viewer.live.pending
        if set(pod["classes"]) & set(classes)
    ]
    snapshot = viewer.live.snapshot()
    candidates = await viewer.work.run(find_candidate_pods, snapshot, id_, pods)
    documents = [_candidate_document(candidate, snapshot.taken) for candidate in candidates]
    return {"candidates": documents, "unjudged": max(0, len(pods) - MOST_PODS)}


def _candidate_document(candidate: CandidatePod, now: datetime) -> dict[str, Any]:
    why_not = candidate.why_not
    return {
        "namespace": candidate.namespace,
        "name": candidate.name,
        "request": candidate.request,
        "deviceClass": candidate.device_class,
        "count": candidate.count,
        "fits": candidate.fits,
        "reason": render_note(why_not, now) if why_not is not None else "",
    }


async def history(viewer: Viewer, query: Query) -> Any:
    """Return past taints and evictions, of one object or of all; the newest first."""
    arguments = [word for word in (first(query, "kind"), first(query, "name")) if word]
    session = session_of(viewer, "history", {"since": first(query, "since")}, arguments)
    try:
        kinds = kinds_for(session)
        snapshot = await take_snapshot(session, kinds)
        refuse_missing_records(session, snapshot.gap, kinds)
        entries = await entries_in(session, snapshot, viewer.work.run)
    except CommandError as error:
        return {"history": [], "message": str(error).partition("\n")[0]}
    most = 500
    return {"history": [history_document(entry) for entry in reversed(entries[-most:])]}


async def explain(viewer: Viewer, query: Query) -> Any:
    """Explain an object: why it is in its state, and what would help."""
    arguments = (first(query, "kind"), first(query, "name"))
    session = session_of(viewer, "explain", {"cluster": first(query, "cluster")}, arguments)
    (kind, name), *_ = objects_of(session.options)
    return (await explanation_of(Loads(session), kind, name, viewer.work.run)).as_json()


async def rules(viewer: Viewer, _: Query) -> Any:
    """Return what taints devices, policies, and planned work."""
    snapshot = viewer.live.snapshot()
    sources = await viewer.work.run(taint_sources, snapshot)
    documents = [{**source_document(x), "devices": None} for x in sources]
    policies = [
        {**policy_document(x), "taint": policy_taint(x), "steps": policy_steps(x)}
        for x in snapshot.of(DEVICE_POLICIES).values()
    ]
    maintenances = [
        {**maintenance_document(x), "reason": x.spec.reason}
        for x in snapshot.of(MAINTENANCES).values()
    ]
    return {"sources": documents, "policies": policies, "maintenances": maintenances}


async def evictions(viewer: Viewer, _: Query) -> Any:
    """Return the rules that evict pods, with their progress."""
    snapshot = viewer.live.snapshot()
    session = session_of(viewer, "evictions", {}, ())

    def work() -> list[Any]:
        plane = snapshot.control_plane
        return [
            eviction_document(progress)
            for progress in progress_in(session, snapshot.exposures, snapshot, plane)
        ]

    return {"evictions": await viewer.work.run(work), "pausable": can_pause(viewer)}


def can_pause(viewer: Viewer) -> bool:
    """Report whether evictions can be paused, which needs Sully's controller and records."""
    gap = viewer.live.caches.gap(TAINT_RECORDS)
    return viewer.live.plane.evictor == "Sully" and (gap is None or gap.reason != "not served")


async def effects(viewer: Viewer, _: Query) -> Any:
    """Return the effects of taints that the server stores, as far as that is known."""
    plane = viewer.live.plane
    return {
        "effects": [
            name
            for name, effect in EFFECTS.items()
            if not effect.feature_gate
            or (plane.scheduler == "Sully" and plane.is_enabled(effect.feature_gate))
        ]
    }


async def pending(viewer: Viewer, _: Query) -> Any:
    """Return the pods that wait for devices."""
    return {"pods": viewer.live.pending}
