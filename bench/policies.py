"""Measures device policies without a server: many devices, many policies, a storm of faults.

    python bench/policies.py [--nodes 1000] [--devices 8] [--policies 50] [--signals 4000]

Reports of health arrive node by node; then every policy evaluates what changed and decides, as its
controller does. The limits of all policies are checked after each round, and the program fails if
one is exceeded, if a decision takes more than a second, or if memory grows with the rounds.
"""

import argparse
import gc
import sys
import time
from collections import Counter
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from sully.api.resource.types import DeviceAttribute
from sully.api.sully.types import DeviceHealth, DeviceTaintPolicy
from sully.client.informers.informer import Informer
from sully.client.transport import Kind, WatchEvent
from sully.domain.devicepolicies.decisions import PolicyContext, decide, unavailable_devices
from sully.domain.devicepolicies.settings import settings_of
from sully.domain.devicepolicies.states import DeviceState
from sully.machinery.formats.timestamps import format_micro_time
from sully.testing.builders import device, slice_
from sully.testing.clock import FakeClock
from sully.views.devicepolicies.facts import FactsView
from sully.views.devicepolicies.policy_devices import PolicyDevices
from sully.views.devices.inventory import Inventory
from sully.views.kinds import (
    CLAIMS,
    CLASSES,
    DEVICE_HEALTH,
    DEVICE_POLICIES,
    POLICY_NODES,
    RULES,
    SLICES,
)

DRIVER = "gpu.example.com"
FLEET_MAX, NODE_MAX = 40, 2
SLOWEST = 1.0
"""Seconds of CPU time that one policy may take for one decision."""
ROUNDS = 6
GROWTH = 1.2
"""How much more memory the last round may need than the second."""
_versions = count(1)


class World:
    """The devices of a fleet, and the policies for them."""

    def __init__(self, nodes: int, devices: int, policies: int) -> None:
        self.clock = FakeClock()
        self.devices = devices
        self._health = self._feed(DEVICE_HEALTH)
        slices, nodes_ = self._feed(SLICES), self._feed(POLICY_NODES)
        self.facts = FactsView(
            inventory=Inventory(
                slices=slices, classes=self._feed(CLASSES), rules=self._feed(RULES), patches=None
            ),
            claims=self._feed(CLAIMS),
            nodes=nodes_,
            health=self._health,
        )
        for number in range(nodes):
            node = f"node-{number:04}"
            published = (
                device(f"gpu-{index}", uuid=DeviceAttribute(string_value=_uuid(number, index)))
                for index in range(devices)
            )
            _put(slices, slice_(node, *published, pool=node, node=node, driver=DRIVER))
        self.policies = [Policy(number, self) for number in range(policies)]
        self.facts.on_change(self._changed)

    def _feed(self, kind: Kind[Any]) -> Informer[Any]:
        return Informer(None, kind, clock=self.clock)  # type: ignore[arg-type]  # fed by hand

    def _changed(self, pools: Any) -> None:
        for policy in self.policies:
            policy.devices.changed(pools)

    def report(self, node: int, *, faulty: bool) -> None:
        """Let the agent of a node report on its devices."""
        now = format_micro_time(self.clock.now())
        reason = {"key": "xid", "value": "79", "severity": "Critical", "since": now}
        status = {"status": "Unhealthy", "reasons": [reason]} if faulty else {"status": "Healthy"}
        reported = [
            {"uuid": _uuid(node, index), "since": now, **status} for index in range(self.devices)
        ]
        spec = {
            "nodeName": f"node-{node:04}",
            "reporter": "nvml",
            "renewTime": now,
            "leaseDurationSeconds": 86400,
            "devices": reported,
        }
        body = {"metadata": {"name": f"node-{node:04}"}, "spec": spec}
        _put(self._health, msgspec.convert(body, DeviceHealth))


class Policy:
    """One policy, and the states of its devices."""

    def __init__(self, number: int, world: World) -> None:
        spec = {
            "mode": "Enforce",
            "selector": {"driver": DRIVER},
            "sources": [{"name": "health", "severity": "Major", "deviceHealth": {}}],
            "taint": {"key": f"example.com/faulty-{number}"},
            "steps": [{"effect": "NoSchedule"}, {"after": "1m", "effect": "NoExecute"}],
            "clearAfter": "1m",
            "limits": [
                {"scope": "Fleet", "maxUnavailable": FLEET_MAX},
                {"scope": "Node", "maxUnavailable": NODE_MAX},
            ],
        }
        body = {"metadata": {"name": f"policy-{number}", "uid": str(number)}, "spec": spec}
        self.policy: DeviceTaintPolicy = msgspec.convert(body, DEVICE_POLICIES.type)
        self.devices = PolicyDevices(self.policy, world.facts)
        self.states: dict[str, DeviceState] = {}

    def decide(self, now: datetime) -> float:
        """Evaluate and decide once; return the CPU time of that."""
        started = time.process_time()
        self.devices.update(now)
        seen = self.devices.observations(self.states)
        groups = self.devices.groups({*self.states, *seen})
        decision = decide(
            settings_of(self.policy), self.states, seen, PolicyContext(groups=groups, now=now)
        )
        self.states = dict(decision.states)
        return time.process_time() - started

    def check(self) -> None:
        """Fail if a limit is exceeded."""
        unavailable = unavailable_devices(self.states.values())
        nodes = Counter(name.split("/")[1] for name in unavailable)
        if len(unavailable) > FLEET_MAX or max(nodes.values(), default=0) > NODE_MAX:
            raise SystemExit(f"a limit of {self.policy.metadata.name} is exceeded: {nodes}")


def _resident() -> float:
    """Return the resident memory in MiB."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def _uuid(node: int, index: int) -> str:
    return f"GPU-{node:04}-{index}"


def _put(feed: Informer[Any], obj: Any) -> None:
    version = str(next(_versions))
    metadata = msgspec.structs.replace(obj.metadata, resource_version=version)
    new = msgspec.structs.replace(obj, metadata=metadata)
    feed.change(WatchEvent("MODIFIED", new, version))


def main() -> None:
    """Measure, print, and fail if something is not as it should be."""
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name, value in (("nodes", 1000), ("devices", 8), ("policies", 50), ("signals", 4000)):
        flags.add_argument(f"--{name}", type=int, default=value)
    options = flags.parse_args()
    world = World(options.nodes, options.devices, options.policies)
    first = [policy.decide(world.clock.now()) for policy in world.policies]
    print(f"{'devices':22}{options.nodes * options.devices:>10}")
    print(f"{'policies':22}{len(world.policies):>10}")
    print(f"{'first decision':22}{max(first):>10.3f} s      slowest policy")
    slowest, sizes = 0.0, []
    for round_ in range(ROUNDS):
        # Faults and recoveries alternate.
        faulty = round_ % 2 == 0
        for node in range(options.signals // options.devices):
            world.report(node, faulty=faulty)
        started = time.process_time()
        taken = [policy.decide(world.clock.now()) for policy in world.policies]
        whole = time.process_time() - started
        for policy in world.policies:
            policy.check()
        held = sum(state.phase == "HeldBack" for state in world.policies[0].states.values())
        slowest = max(slowest, *taken)
        gc.collect()
        sizes.append(_resident())
        print(
            f"{'storm' if faulty else 'recovery':22}{max(taken):>10.3f} s      slowest policy,"
            f" all {whole:.1f} s, {held} devices held back, {sizes[-1]:.0f} MiB"
        )
        world.clock.advance(120)
        for policy in world.policies:
            policy.decide(world.clock.now() + timedelta(seconds=1))
    if slowest > SLOWEST:
        sys.exit(f"a decision took {slowest:.2f} s")
    if sizes[-2] > sizes[0] * GROWTH + 1:
        sys.exit(f"memory grows: {sizes}")


if __name__ == "__main__":
    main()
