"""Controllers of one process, and the simulated kubelets beside them, share their caches."""

from __future__ import annotations

import random
from collections import Counter

from controllers.world import World
from sully.client.discovery.resources import of_scheme
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.domain.simulated.fleet import Fleet
from sully.machinery.gates import Gates
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics

SEVERAL = {
    # Controllers read labels, conditions or capacity of all, or their own by a label.
    "namespaces": 3,
    "nodes": 4,
    # The garbage collector reads all, other controllers some: those of one name or label.
    "clusterrolebindings.rbac.authorization.k8s.io": 2,
    "clusterroles.rbac.authorization.k8s.io": 3,
    "jobs.batch": 2,
    "leases.coordination.k8s.io": 2,
    "rolebindings.rbac.authorization.k8s.io": 2,
    "serviceaccounts": 2,
    # What others read of them shows no owners.
    "evictionrecords.sully.dev": 2,
    "resourceclaimtemplates.resource.k8s.io": 2,
}
"""The resources with more than one cache."""


def test_a_process_has_one_cache_of_a_resource(world: World) -> None:
    metrics = Metrics()
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(world.api.scheme),
        gates=Gates(),
        ids=Ids(random.Random(1)),
        simulated_nodes=SimulatedNodeSettings(Fleet(1, 1)),
    )

    build_manager(config, world.clock, metrics)

    samples = [x for family in metrics.registry.collect() for x in family.samples]
    caches = [x.labels["resource"] for x in samples if x.name == "sully_informer_objects"]
    assert {resource: n for resource, n in Counter(caches).items() if n > 1} == SEVERAL
