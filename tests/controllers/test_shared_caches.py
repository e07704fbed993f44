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

MANY = ("pods", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io")
"""The resources of which a cluster has the most objects; each cache holds all of them."""


def test_a_process_has_one_cache_of_what_there_is_most(world: World) -> None:
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
    assert {resource: Counter(caches)[resource] for resource in MANY} == dict.fromkeys(MANY, 1)
