"""What the controllers beside a server may do, right by right, and what of it they used.

`unused` is asked at the end of a whole run, with all that trail.py has seen; unused.py has the
exceptions. A right is one verb on one resource in one role. What the caches of a controller read
counts for its role only if it has that cache also when it runs alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from e2e.trail import Use
from e2e.unused import UNUSED
from install.identities import IDENTITIES
from sully.api import build_scheme
from sully.client.direct import DirectTransport
from sully.client.discovery.resources import of_scheme
from sully.controller_context import MANAGER, ControllerConfig
from sully.controller_setup import CONTROLLERS, build_manager
from sully.install.manifests import manifests
from sully.install.workload import Settings
from sully.machinery.gates import Gates
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.testing.clock import FakeClock


class Right(NamedTuple):
    """One verb on one resource, as a role grants it."""

    role: str
    verb: str
    group: str
    resource: str  # with the subresource

    def __str__(self) -> str:
        return f"{self.role}: {self.verb} {self.resource}.{self.group}".rstrip(".")


def granted() -> set[Right]:
    """Return everything that install gives where all controllers are to run."""
    settings = Settings(evictor="sully", controllers=tuple(CONTROLLERS))
    verbs = {
        Right(item["metadata"]["name"], verb, group, resource)
        for item in manifests(settings)["rbac"]
        for rule in item.get("rules", ())
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    # Who may list something learns nothing more from a get.
    return {item for item in verbs if item.verb != "get" or item._replace(verb="list") not in verbs}


def unused(used: Iterable[Use]) -> set[Right]:
    """Return what was given and not used, and for which no reason is written down either."""
    used = set(used)
    return {
        item
        for item in granted()
        if str(item) not in UNUSED and not any(_exercises(use, item) for use in used)
    }


def _exercises(use: Use, right: Right) -> bool:
    return (
        use.verb == right.verb
        and right.group in ("*", use.group)
        and right.resource in ("*", use.resource)
        and _is_of(use, right.role.removeprefix("sully:"))
    )


def _is_of(use: Use, name: str) -> bool:
    """Report whether it was the controller of a role, or a cache that it has."""
    if name not in IDENTITIES:
        return True
    cached = use.agent == MANAGER and (use.group, use.resource) in follows(name)
    return cached or use.agent in IDENTITIES[name]


@cache
def follows(name: str) -> frozenset[tuple[str, str]]:
    """Return what the caches of a controller have, where it runs alone."""
    config = ControllerConfig(
        transport=lambda _: DirectTransport.__new__(DirectTransport),
        served=of_scheme(build_scheme()),
        gates=Gates(),
        ids=Ids(),
        certificate="a certificate",
        chosen=frozenset((name,)),
    )
    manager = build_manager(config, FakeClock(), Metrics())
    return frozenset((kind.group, kind.plural) for kind, _ in manager._informers)
