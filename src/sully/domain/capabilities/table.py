"""The table of `sully capabilities`: what a server supports, and what Sully does there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sully.domain.capabilities.duties import (
    BESIDE_KUBERNETES,
    ControllerChoice,
    Evictor,
    duties,
    evictor,
    no_devices,
)
from sully.domain.capabilities.offers import DEVICES, OWN_KINDS, PATCHES, Offer

_CRITERIA = ("driver", "pool", "device", "deviceClassName", "selectors")


class Row(NamedTuple):
    """One line of the table."""

    subject: str
    server: str
    sully: str


def rows(server: Offer, flag: Evictor = "auto") -> Iterator[Row]:
    """Yield the table."""
    work = {duty.name: duty for duty in duties(server, BESIDE_KUBERNETES, flag)}
    beside = "runs all controllers" if server.own else "runs what its controllers do not"
    yield Row("version", server.version, beside)
    yield Row("devices", _devices(server), _does(work["scheduling"], "schedules"))
    yield Row("device taints", _taints(server), _honors(server))
    yield Row("taint rules", _rules(server), _does(work["expiry"], "deletes expired rules"))
    yield Row("eviction", _evicts(server, flag), _does(work["eviction"], "evicts"))
    yield Row("own kinds", _own(server), _own_work(server, work))
    yield Row("clusters", _hub(server), _does(work["placement"], "places"))


def _does(duty: ControllerChoice, what: str) -> str:
    return f"{what}: {duty.why}" if duty.runs else f"no: {duty.why}"


def _devices(server: Offer) -> str:
    if server.devices:
        return f"{DEVICES}/{server.devices}"
    return ", ".join(f"{DEVICES}/{version}" for version in server.too_old) or "none"


def _taints(server: Offer) -> str:
    if server.taints_kept:
        return "yes"
    return "in the schema, possibly disabled" if server.taints else "no"


def _honors(server: Offer) -> str:
    if not server.devices:
        return f"no: {no_devices(server)}"
    if not server.taints:
        return "only those of patches" if PATCHES in server.own_kinds else "no: there are none"
    return "honors them"


def _rules(server: Offer) -> str:
    if not server.rules:
        return "none"
    by = ", ".join(name for name in _CRITERIA if name in server.selector_fields)
    status = "" if server.rule_status else "; no status"
    return f"{server.rules} by {by or 'fields that it does not publish'}{status}"


def _evicts(server: Offer, flag: Evictor) -> str:
    if server.own:
        return "leaves it to Sully"
    return "none at work" if evictor(server, flag).sully else "its own"


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
