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


def rows(found: Offer, said: Evictor = "auto") -> Iterator[Row]:
    """Yield the table."""
    work = {duty.name: duty for duty in duties(found, BESIDE_KUBERNETES, said)}
    beside = "runs all controllers" if found.own else "runs what its controllers do not"
    yield Row("version", found.version, beside)
    yield Row("devices", _devices(found), _does(work["scheduling"], "schedules"))
    yield Row("device taints", _taints(found), _honors(found))
    yield Row("taint rules", _rules(found), _does(work["expiry"], "deletes expired rules"))
    yield Row("eviction", _evicts(found, said), _does(work["eviction"], "evicts"))
    yield Row("own kinds", _own(found), _own_work(found, work))
    yield Row("clusters", _hub(found), _does(work["placement"], "places"))


def _does(duty: ControllerChoice, what: str) -> str:
    return f"{what}: {duty.why}" if duty.runs else f"no: {duty.why}"


def _devices(found: Offer) -> str:
    if found.devices:
        return f"{DEVICES}/{found.devices}"
    return ", ".join(f"{DEVICES}/{version}" for version in found.too_old) or "none"


def _taints(found: Offer) -> str:
    if found.taints_kept:
        return "yes"
    return "in the schema, possibly disabled" if found.taints else "no"


def _honors(found: Offer) -> str:
    if not found.devices:
        return f"no: {no_devices(found)}"
    if not found.taints:
        return "only those of patches" if PATCHES in found.own_kinds else "no: there are none"
    return "honors them"


def _rules(found: Offer) -> str:
    if not found.rules:
        return "none"
    by = ", ".join(name for name in _CRITERIA if name in found.selector_fields)
    status = "" if found.rule_status else "; no status"
    return f"{found.rules} by {by or 'fields that it does not publish'}{status}"


def _evicts(found: Offer, said: Evictor) -> str:
    if found.own:
        return "leaves it to Sully"
    return "none at work" if evictor(found, said).sully else "its own"


def _own(found: Offer) -> str:
    return ", ".join(OWN_KINDS[kind] for kind in OWN_KINDS if kind in found.own_kinds) or "none"


def _own_work(found: Offer, work: dict[str, ControllerChoice]) -> str:
    if not found.own_kinds and not found.own:
        return "'sully install' installs them"
    names = {"history": "records evictions", "patchstatus": "reports on patches"}
    does = [text for name, text in names.items() if work[name].runs]
    return " and ".join(does) or f"no: {work['history'].why}"


def _hub(found: Offer) -> str:
    return "Open Cluster Management" if "managedclusters" in found.hub else "none"
