"""The checks of an API server: health, clock, versions, feature gates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.capabilities.inaction import Subject, inaction_of, inactions
from sully.domain.capabilities.offers import FIRST_WITH_TAINTS, OWN_KINDS, Offer
from sully.domain.diagnosis.findings import Finding, failure, listed, ok, warning
from sully.machinery.formats.plurals import number_of

HEALTH, CLOCK, VERSION, DEVICES = "server health", "clock", "version", "device API"
GATES, KINDS, EVICTORS = "feature gates", "kinds", "evictors"
RUN_INSTALL = "run 'sully install --apply --image IMAGE'"
CLOSE_SECONDS = 2.0
"""The header `Date` has whole seconds, and a response takes some time."""
FAR_SECONDS = 15.0
"""The duration of a lease: beyond it, controllers cannot rely on timestamps of others."""
_FAILED = re.compile(r"^\[-\](\S+) failed", re.MULTILINE)
_SULLY = re.compile(r"\+sully-(\S+)$")


def check_health(page: str, error: str = "") -> Finding:
    """Check the page `/readyz?verbose` of a server; one of its checks is the store.

    `error`: what the client reports if the server answers that it is not ready.
    """
    if not error:
        return ok(HEALTH, f"{number_of(page.count('[+]'), 'check')} of the server passed")
    failed = _FAILED.findall(error)
    text = f"failed checks of the server: {listed(failed)}" if failed else " ".join(error.split())
    remedy = "read its log; a failed store is an etcd without a leader, or a full disk"
    return failure(HEALTH, text, remedy)


def check_clock(server: datetime | None, local: datetime) -> Finding:
    """Check the clock of this machine against that of the server."""
    if server is None:
        return warning(
            CLOCK, "the server sends no time", "compare the clocks of both machines yourself"
        )
    seconds = (local - server).total_seconds()
    if abs(seconds) <= CLOSE_SECONDS:
        return ok(CLOCK, f"within {CLOSE_SECONDS:.0f} seconds of the server's")
    text = f"{abs(seconds):.0f} seconds {'ahead of' if seconds > 0 else 'behind'} the server's"
    remedy = "synchronize both machines with NTP: tolerations expire by these clocks"
    far = abs(seconds) > FAR_SECONDS
    return failure(CLOCK, text, remedy) if far else warning(CLOCK, text, remedy)


def check_versions(client: str, offer: Offer) -> Iterator[Finding]:
    """Check that client and server fit, and that the server has devices."""
    match = _SULLY.search(offer.version)
    if match and match[1] != client:
        yield warning(
            VERSION,
            f"this program is {client}, the server is {match[1]}",
            "use the same version of sully for both",
        )
    elif match:
        yield ok(VERSION, f"client and server are {client}")
    elif 0 <= offer.minor < FIRST_WITH_TAINTS:
        yield failure(
            VERSION,
            f"Kubernetes {offer.version} has no taints of devices",
            f"upgrade to Kubernetes 1.{FIRST_WITH_TAINTS} or later",
        )
    else:
        yield ok(VERSION, f"client {client}, Kubernetes {offer.version}")
    if not offer.own:
        yield _check_device_api(offer)


def _check_device_api(offer: Offer) -> Finding:
    enable = "start kube-apiserver with --runtime-config=resource.k8s.io/v1=true"
    if not offer.devices:
        old = f", only {listed(offer.too_old)}" if offer.too_old else ""
        return failure(
            DEVICES, f"the server has no supported version of resource.k8s.io{old}", enable
        )
    if not offer.stores_taints:
        return failure(
            DEVICES,
            f"resource.k8s.io/{offer.devices}, which drops taints of devices",
            "enable the feature gate DRADeviceTaints in all components",
        )
    return ok(DEVICES, f"resource.k8s.io/{offer.devices}, rules {offer.rules or 'not served'}")


def check_gates(plane: ControlPlane) -> Iterator[Finding]:
    """Check which objects have no effect because a feature gate is off."""
    disabled = [inaction for inaction in inactions(plane) if inaction.gates]
    for inaction in disabled:
        yield warning(GATES, inaction.text, inaction.remedy)
    if disabled:
        return
    if not plane.gates_from:
        yield warning(
            GATES,
            "not known: the metrics of the server are not readable",
            "use a user who may read /metrics",
        )
    else:
        yield ok(GATES, f"those of device taints are enabled (known from {plane.gates_from})")


def check_evictors(plane: ControlPlane) -> Iterator[Finding]:
    """Check that only one of the evictors of Kubernetes and Sully evicts."""
    inaction = inaction_of(plane, Subject.RATES)
    if inaction is not None:
        yield failure(EVICTORS, inaction.text, inaction.remedy)
    elif plane.is_mixed:
        yield ok(EVICTORS, "Sully evicts; no rule shows that Kubernetes does, too")


def check_kinds(served: Iterable[str], *, installed: bool) -> Finding:
    """Check which of the own kinds a server has that is not Sully's."""
    missing = [kind for plural, kind in OWN_KINDS.items() if plural not in set(served)]
    if not missing:
        return ok(KINDS, "all kinds of Sully are installed")
    remedy = "apply 'sully install' again"
    text = f"not installed: {listed(missing)}"
    return failure(KINDS, text, remedy) if installed else warning(KINDS, text, RUN_INSTALL)
