"""Whether an object exists that `sully history` names, but has no records of."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.output.text import did_you_mean
from sully.cli.selection.globs import glob_matches
from sully.cli.selection.selectors import named

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Snapshot


def no_records_text(session: Session) -> str:
    """Return that there are no records, and of what."""
    subject, name = named(session.options.subject, session.options.name)
    of = f" for {subject} {name}" if subject else ""
    where = f" in namespace {session.namespace}" if session.namespace else ""
    return f"No records found{of}{where}."


async def missing_text(session: Session) -> str:
    """Return that the object does not exist; empty if it does, or if that is not known."""
    subject, name = named(session.options.subject, session.options.name)
    if not subject:
        return ""
    kinds = _kinds(subject)
    snapshot = await take_snapshot(session, kinds, namespace=session.namespace)
    if any(_is_hidden(session, snapshot, kind) for kind in kinds):
        return ""
    if subject == "device":
        return _missing_device(snapshot, name)
    names = set(_names(subject, snapshot, session.namespace))
    known = names | {pod.partition("/")[2] for pod in names} if subject == "pod" else names
    if any(name == one if subject == "node" else glob_matches(name, one) for one in known):
        return ""
    where = f" in namespace {session.namespace}" if session.namespace and subject == "pod" else ""
    noun = {"rule": "devicetaintrule", "cluster": "managedcluster"}.get(subject, subject)
    return f'{noun} "{name}" not found{where}{did_you_mean(name, known)}'


def _kinds(subject: str) -> "tuple[Kind[Any], ...]":
    from sully.views.fleet_kinds import CLUSTERS
    from sully.views.kinds import CONSUMER_PODS, RULES, SLICES, TAINT_RECORDS
    from sully.views.snapshot.kinds import NODES

    return {
        "rule": (RULES, TAINT_RECORDS),
        "pod": (CONSUMER_PODS,),
        "node": (NODES, SLICES),
        "cluster": (CLUSTERS,),
        "device": (SLICES,),
    }[subject]


def _is_hidden(session: Session, snapshot: "Snapshot", kind: "Kind[Any]") -> bool:
    gap = snapshot.gap(kind)
    if gap is None or gap.reason != "not allowed":
        return False
    return not gap.only_namespace or gap.only_namespace != session.namespace


def _names(subject: str, snapshot: "Snapshot", namespace: str) -> Iterable[str]:
    """Return the names of the objects that exist; of pods, with their namespace."""
    from sully.views.devices.device_views import node_of
    from sully.views.kinds import TAINT_RECORDS

    first = _kinds(subject)[0]
    for obj in snapshot.of(first).values():
        metadata = obj.metadata
        if subject != "pod":
            yield metadata.name
        elif namespace in ("", metadata.namespace):
            yield f"{metadata.namespace}/{metadata.name}"
    if subject == "rule":
        yield from (record.spec.rule.name for record in snapshot.of(TAINT_RECORDS).values())
    if subject == "node":
        yield from (node_of(device.published) for device in snapshot.devices())


def _missing_device(snapshot: "Snapshot", name: str) -> str:
    from sully.cli.command import CommandError
    from sully.cli.selection.device_names import DeviceNames, MissingNameError

    try:
        DeviceNames(snapshot).find(name)
    except MissingNameError as error:
        return str(error)
    except CommandError:
        # It stands for several.
        return ""
    return ""
