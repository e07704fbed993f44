"""The table of `sully capabilities`: what a server supports, and what Sully does there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sully.domain.capabilities.control_plane import (
    PATCHES_GATE,
    RULES_GATE,
    TAINTS_GATE,
    ControlPlane,
)
from sully.domain.capabilities.duties import (
    BESIDE_KUBERNETES,
    ControllerChoice,
    Evictor,
    duties,
    evictor,
    no_devices,
)
from sully.domain.capabilities.inaction import Subject, inaction_of
from sully.domain.capabilities.installation import Installation, selected
from sully.domain.capabilities.offers import DEVICES, OWN_KINDS, PATCHES, Offer

_CRITERIA = ("driver", "pool", "device", "deviceClassName", "selectors")


class Row(NamedTuple):
    """One line of the table."""

    subject: str
    server: str
    sully: str


class GateRow(NamedTuple):
    """One line of the table of feature gates."""

    gate: str
    server: str
    effect: str


def rows(
    server: Offer,
    flag: Evictor = "auto",
    only: frozenset[str] | None = None,
    plane: ControlPlane | None = None,
) -> Iterator[Row]:
    """Yield the table; with the control plane, taints are only honored if their gate is on."""
    off = plane is not None and not plane.is_enabled(TAINTS_GATE)
    choices = selected(duties(server, BESIDE_KUBERNETES, flag), only)
    work = {duty.name: duty for duty in choices}
    beside = "runs all controllers" if server.own else "runs what its controllers do not"
    yield Row("version", server.version, beside)
    yield Row("devices", _devices(server), _does(work["scheduling"], "schedules"))
    yield Row("device taints", "disabled" if off else _taints(server), _honors(server, off=off))
    yield Row("taint rules", _rules(server), _does(work["expiry"], "deletes expired rules"))
    yield Row("eviction", _evicts(server, flag, plane), _does(work["eviction"], "evicts"))
    yield Row("own kinds", _own(server), _own_work(server, work))
    yield Row("clusters", _hub(server), _does(work["placement"], "places"))


def gate_rows(plane: ControlPlane) -> Iterator[GateRow]:
    """Yield the feature gates that decide about taints and patches."""
    for gate, subject in GATES.items():
        yield GateRow(gate, _gate(plane, gate), _effect(plane, subject))


def _gate(plane: ControlPlane, gate: str) -> str:
    if gate in plane.gates:
        state = "enabled" if plane.gates[gate] else "disabled"
        return f"{state}, by its roles" if plane.gates_from == "roles" else state
    if gate == PATCHES_GATE and plane.scheduler == "Kubernetes":
        return "none"
    return "unknown: its metrics are not readable"


def _effect(plane: ControlPlane, subject: Subject) -> str:
    inaction = inaction_of(plane, subject)
    if inaction is None and subject is Subject.PATCHED_VALUES:
        # Where nothing of a patch has an effect, that is reported as a whole.
        inaction = inaction_of(plane, Subject.PATCHES)
    if inaction is not None:
        return inaction.summary if inaction.gates else inaction.text
    known = ", as far as known" if plane.gates_from != "metrics" else ""
    return f"{subject.value} have an effect{known}"


GATES = {
    TAINTS_GATE: Subject.TAINTS,
    RULES_GATE: Subject.RULES,
    PATCHES_GATE: Subject.PATCHED_VALUES,
}


def flags_of(
    installation: Installation | None, flag: Evictor, only: frozenset[str] | None
) -> tuple[Evictor, frozenset[str] | None]:
    """Return the flags that count: those that are set, or those of what is installed."""
    if installation is None:
        return flag, only
    return installation.evictor if flag == "auto" else flag, only or installation.only


def _does(duty: ControllerChoice, what: str) -> str:
    return f"{what}: {duty.why}" if duty.runs else f"no: {duty.why}"


def _devices(server: Offer) -> str:
    if server.devices:
        return f"{DEVICES}/{server.devices}"
    return ", ".join(f"{DEVICES}/{version}" for version in server.too_old) or "none"


def _taints(server: Offer) -> str:
    if server.stores_taints:
        return "yes"
    return "in the schema, possibly disabled" if server.taints else "no"


def _honors(server: Offer, *, off: bool) -> str:
    if not server.devices:
        return f"no: {no_devices(server)}"
    if not server.taints or (off and not server.own):
        return "only those of patches" if PATCHES in server.own_kinds else "no: there are none"
    return f"no: feature gate {TAINTS_GATE} is disabled" if off else "honors them"


def _rules(server: Offer) -> str:
    if not server.rules:
        return "none"
    by = ", ".join(name for name in _CRITERIA if name in server.selector_fields)
    status = "" if server.rule_status else "; no status"
    return f"{server.rules} by {by or 'fields that it does not publish'}{status}"


def _evicts(server: Offer, flag: Evictor, plane: ControlPlane | None) -> str:
    if server.own:
        return "none: Sully evicts"
    if plane is not None and plane.second_evictor:
        return f"its own, as well as Sully's: {plane.second_evictor}"
    if plane is not None and not plane.is_enabled(TAINTS_GATE):
        return f"none: feature gate {TAINTS_GATE} is disabled"
    choice = evictor(server, flag)
    if choice.doubt:
        return "disabled, as --evictor assumes"
    return "none" if choice.sully else "its own"


def _own(server: Offer) -> str:
    return ", ".join(OWN_KINDS[kind] for kind in OWN_KINDS if kind in server.own_kinds) or "none"


def _own_work(server: Offer, work: dict[str, ControllerChoice]) -> str:
    if not server.own_kinds and not server.own:
        return "'sully install' installs them"
    names = {"history": "records evictions", "patchstatus": "reports on patches"}
    does = [text for name, text in names.items() if work[name].runs]
    return " and ".join(does) or f"no: {work['history'].why}"


def _hub(server: Offer) -> str:
    return "Open Cluster Management" if "managedclusters" in server.hub else "none"
