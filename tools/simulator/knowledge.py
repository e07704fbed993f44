"""Whether a controller acts against its own caches.

What a controller knows lags behind the store, so that an eviction may be in order although its rule
is gone. But no delay excuses a request for which its caches show no reason when it is sent: then
the decision was not checked again after the last answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from simulator.clock import SimulatedClock
from simulator.judgement import CLAIMS, RULES, SLICES, causes
from simulator.loop import Process, SimulatedLoop
from simulator.truth import Truth
from sully.client.calls import Call
from sully.client.objects import key_of
from sully.controllers.framework.manager import Manager

Obj = dict[str, Any]
PODS = "pods"
KNOWN = (PODS, CLAIMS, RULES, SLICES)
EVICTOR = "system:serviceaccount:kube-system:device-taint-eviction-controller"


class Knowledge:
    """Checks evictions when they are sent."""

    def __init__(
        self,
        truth: Truth,
        loop: SimulatedLoop,
        manager_of: Callable[[Process], Manager | None],
        report: Callable[[str, str], None],
    ) -> None:
        self._truth = truth
        self._loop = loop
        self._manager_of = manager_of
        self._report = report

    def write_started(self, process: Process, user: str, call: Call) -> None:
        """Check a write of a controller."""
        if user != EVICTOR or not is_eviction(call):
            return
        manager, clock = self._manager_of(process), process.clock
        assert isinstance(clock, SimulatedClock), "every client has one"
        if manager is None or clock.stepped_at > self._loop.time() - 60.0:
            # A clock that was set back makes reasons go away that were due.
            return
        view = self._view(manager)
        pod = view[PODS].get((call.ref.namespace, call.ref.name))
        now = clock.now()
        if pod is not None and not any(
            cause.due <= now and not cause.paused for cause in causes(view, pod)
        ):
            self._report(
                "eviction",
                f"{process.name} evicts {call.ref.name}, and its caches show no due taint",
            )

    def _view(self, manager: Manager) -> dict[str, dict[tuple[str, str], Obj]]:
        """Return the cached objects as the store had them."""
        view: dict[str, dict[tuple[str, str], Obj]] = defaultdict(dict)
        for (kind, selector), informer in manager._informers.items():
            resource = f"{kind.group}/{kind.plural}" if kind.group else kind.plural
            if resource not in KNOWN or kind.untyped or selector.label_selector:
                continue
            for cached in informer.values():
                key = key_of(cached)
                obj = self._truth.at(resource, key, int(cached.metadata.resource_version))
                if obj is not None:
                    view[resource][key.namespace, key.name] = obj
        return view


def is_eviction(call: Call) -> bool:
    if call.ref.plural != PODS or "dryRun" in call.options:
        return False
    return call.verb == "delete" or call.ref.subresource == "eviction"
