"""The questions that can be asked, by kind, and the functions that answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sully.client.transport import Key, Kind
from sully.explain.causes import Finding
from sully.explain.explanation import Explanation
from sully.explain.facts.clusters.clusters import find_cluster
from sully.explain.facts.clusters.placements import find_placement
from sully.explain.facts.devices.devices import find_device
from sully.explain.facts.devices.maintenances import find_maintenance
from sully.explain.facts.devices.nodes import find_node
from sully.explain.facts.devices.patches import find_patch
from sully.explain.facts.devices.policies import find_device_policy
from sully.explain.facts.devices.rules import find_rule
from sully.explain.facts.limited import (
    limited_cluster,
    limited_device,
    limited_placement,
    limited_rule,
)
from sully.explain.facts.pods.claims import find_claim
from sully.explain.facts.pods.pods import find_pod
from sully.explain.facts.pods.workloads import workload_finder
from sully.explain.kinds import DEVICE_KINDS
from sully.explain.reader import Reader
from sully.explain.render import render
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SETS
from sully.views.kinds import CLAIMS, DEVICE_POLICIES, MAINTENANCES, PATCHES, RULES, SLICES
from sully.views.snapshot.kinds import FLEET, NODES, PODS, WORKLOADS

Find = Callable[[Reader, Key], Finding | None]
FindLimited = Callable[[Reader, Key, str], Finding | None]
"""Answers from what a namespace has."""


class Question(msgspec.Struct, frozen=True):
    """A kind of object that can be explained."""

    kind: str
    find: Find
    reads: tuple[Kind[Any], ...]
    needs: tuple[Kind[Any], ...]
    """Without these kinds there is no answer."""
    find_limited: FindLimited | None = None
    """Answers callers that may not see all of the kinds that are needed."""
    namespaced: bool = False
    events: bool = False
    """The Events of eviction controllers are part of the answer."""

    def answer(self, reader: Reader, key: Key) -> Explanation | None:
        """Explain an object; None if it is unknown."""
        return _rendered(self.find(reader, key), reader)

    def answer_limited(self, reader: Reader, key: Key, namespace: str) -> Explanation | None:
        """Explain what an object does in a namespace, to a caller that may see only that."""
        finding = self.find_limited(reader, key, namespace) if self.find_limited else None
        return _rendered(finding, reader)


def explain_selection(reader: Reader, key: Key, cluster: str) -> Explanation | None:
    """Explain a placement, and what it makes of one cluster."""
    return _rendered(find_placement(reader, key, cluster), reader)


def _rendered(finding: Finding | None, reader: Reader) -> Explanation | None:
    return render(finding, reader.now) if finding is not None else None


_PLACED = (CLUSTERS, SETS, BINDINGS, PLACEMENTS, DECISIONS)

_USED = (CLAIMS, PODS)


def _workload(kind: Kind[dict[str, Any]]) -> Question:
    return Question(
        kind.kind,
        workload_finder(kind),
        (*DEVICE_KINDS, kind),
        (kind, *_USED),
        namespaced=True,
        events=True,
    )


QUESTIONS = {
    "pod": Question("Pod", find_pod, DEVICE_KINDS, _USED, namespaced=True, events=True),
    "claim": Question("ResourceClaim", find_claim, DEVICE_KINDS, _USED, namespaced=True),
    "device": Question(
        "Device",
        find_device,
        (*DEVICE_KINDS, DEVICE_POLICIES, MAINTENANCES),
        (SLICES, *_USED),
        limited_device,
    ),
    "rule": Question(
        RULES.kind, find_rule, DEVICE_KINDS, (RULES, SLICES, *_USED), limited_rule, events=True
    ),
    "patch": Question(PATCHES.kind, find_patch, DEVICE_KINDS, (PATCHES, SLICES, *_USED)),
    "node": Question("Node", find_node, DEVICE_KINDS, (NODES, SLICES, *_USED)),
    **{kind.kind.lower(): _workload(kind) for kind in WORKLOADS},
    "placement": Question(
        "Placement", find_placement, FLEET, _PLACED, limited_placement, namespaced=True
    ),
    "policy": Question(
        DEVICE_POLICIES.kind, find_device_policy, (DEVICE_POLICIES,), (DEVICE_POLICIES,)
    ),
    "maintenance": Question(MAINTENANCES.kind, find_maintenance, (MAINTENANCES,), (MAINTENANCES,)),
    "cluster": Question("ManagedCluster", find_cluster, FLEET, _PLACED, limited_cluster),
}
