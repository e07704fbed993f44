"""What would happen without the change that is planned, for comparison.

Other rules may be evicting pods, and deleted pods terminate, while the change is in effect. Devices
that become free or used by that do not follow from it.
"""

from __future__ import annotations

from msgspec.structs import replace

from sully.domain.planning.device_counts import DeviceCounts
from sully.planning.simulation.simulator import Simulation
from sully.views.snapshot.kinds import PODS


def counts_without_change(simulation: Simulation) -> dict[str, DeviceCounts]:
    """Count the devices of each class as they would be without the change, at the same time.

    Where nothing happens without it, that is as they are now, and needs no second simulation.
    """
    cluster = simulation.cluster
    pods = cluster.snapshot.of(PODS).values()
    terminating = any(pod.is_terminating for pod in pods)
    if not terminating and not any(eviction.without_change for eviction in simulation.evicted):
        return simulation.counts_before
    start = cluster.clock.start
    baseline = simulation.without_change or Simulation(
        cluster.snapshot, cluster.options, start=start
    )
    horizon = simulation.counted_at - start
    baseline.cluster.options = replace(cluster.options, horizon=horizon)
    return baseline.count_without_change(simulation.before, simulation.counter)
