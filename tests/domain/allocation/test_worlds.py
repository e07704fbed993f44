"""Replays recorded worlds of a real scheduler, where a folder of them is given (SULLY_GOLDEN).

In these worlds one node takes pods, so devices, configurations, node selectors and texts must all
be the same. The pod's own placement (its node selector) is not the allocator's matter.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from domain.allocation.fixtures import offer
from sully.api.resource.defaults import default_claim_spec
from sully.api.resource.types import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceSlice,
)
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.failures import Unresolved
from sully.domain.allocation.pools.nodes import AllocatorNode, is_usable_on
from sully.domain.allocation.requests import prepare
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import (
    Allocated,
    Failed,
    Unallocatable,
    UnallocatableReason,
)
from sully.domain.scheduling.messages import allocation_failure, filter_reason, pre_filter_reason
from sully.machinery.compat import Compat

Obj = dict[str, Any]
ELSEWHERE = "node(s) didn't match Pod's node affinity/selector"
FILTER_ERROR = 'running "DynamicResources" filter plugin: '


def worlds() -> list[Any]:
    folder = os.environ.get("SULLY_GOLDEN")
    if not folder:
        return []
    lines = Path(folder, "worlds.jsonl").read_text().splitlines()
    read = (json.loads(line) for line in lines)
    return [pytest.param(item, id=f"world-{item['seed']}") for item in read if item["exact"]]


def timed(value: Any) -> Any:
    """Put some time where a recording has one relative to its start; it does not matter here."""
    if isinstance(value, dict):
        if list(value) == ["$now"]:
            return "2026-01-01T00:00:00Z"
        return {key: timed(entry) for key, entry in value.items()}
    return [timed(item) for item in value] if isinstance(value, list) else value


class World:
    """A recorded cluster with its one node, and what became of its claims so far."""

    def __init__(self, recorded: Obj, *, strict: bool) -> None:
        self.strict = strict
        self.setup = timed(recorded["setup"])
        node = next(node for node in self.of("Node") if takes_pods(node))
        self.node = AllocatorNode(node["metadata"]["name"], node["metadata"].get("labels", {}))
        rules = [msgspec.convert(rule, DeviceTaintRule) for rule in self.of("DeviceTaintRule")]
        slices = [msgspec.convert(slice_, ResourceSlice) for slice_ in self.of("ResourceSlice")]
        self.offer = offer(slices, node=self.node, rules=[as_upstream(rule) for rule in rules])
        classes = [msgspec.convert(class_, DeviceClass) for class_ in self.of("DeviceClass")]
        self.classes = {class_.metadata.name: class_ for class_ in classes}
        self.ledger = Ledger()
        self.claims: dict[str, ResourceClaim] = {}
        self.allocations: dict[str, AllocationResult] = {}
        for claim in self.of("ResourceClaim"):
            metadata = claim["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            self.claims[key] = claim_of(metadata, claim["spec"])

    def of(self, kind: str) -> list[Obj]:
        return [item for item in self.setup if item["kind"] == kind]

    def place(self, pod: Obj) -> str:
        """Place a pod; return nothing, or the text that reports why not."""
        keys = [self.claim_key(pod, claim) for claim in pod["spec"].get("resourceClaims", ())]
        if any(key not in self.claims for key in keys):
            return "no claim"
        waiting = [key for key in keys if key not in self.allocations]
        expected = prepare([self.claims[key] for key in waiting], self.classes.get)
        if isinstance(expected, Unresolved):
            return pre_filter_reason(expected)
        assert not isinstance(expected, Failed), expected
        if not matches(pod, self.node):
            return ELSEWHERE
        held = [self.allocations[key] for key in keys if key in self.allocations]
        if not all(is_usable_on(item, self.node) for item in held):
            return filter_reason(UnallocatableReason.NOT_ON_NODE)
        verdict = allocate(
            expected,
            self.offer,
            self.ledger,
            compat=Compat.KUBERNETES if self.strict else Compat.SULLY,
        )
        match verdict:
            case Allocated(allocations=made):
                for key, allocation in zip(waiting, made, strict=True):
                    self.allocations[key] = allocation
                    self.ledger.take(allocation)
                return ""
            case Unallocatable(reason=reason):
                return filter_reason(reason)
            case Failed(failure):
                return FILTER_ERROR + allocation_failure(failure)

    def shares(self, pod: Obj, other: Obj) -> bool:
        """Report whether two pods refer to one claim."""
        mine, theirs = (
            {self.claim_key(one, claim) for claim in one["spec"].get("resourceClaims", ())}
            for one in (pod, other)
        )
        return bool(mine & theirs)

    def claim_key(self, pod: Obj, reference: Obj) -> str:
        """Name the claim that a pod refers to; one from a template is made on the way."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if "resourceClaimName" in reference:
            return f"{namespace}/{reference['resourceClaimName']}"
        made = f"{name}:{reference['name']}"
        for template in self.of("ResourceClaimTemplate"):
            place = template["metadata"]["namespace"], template["metadata"]["name"]
            if place == (namespace, reference["resourceClaimTemplateName"]):
                metadata = {"namespace": namespace, "name": made}
                self.claims.setdefault(
                    f"{namespace}/{made}", claim_of(metadata, template["spec"]["spec"])
                )
        return f"{namespace}/{made}"


def takes_pods(node: Obj) -> bool:
    return not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def as_upstream(rule: DeviceTaintRule) -> DeviceTaintRule:
    """Kubernetes 1.37 takes a rule without selector for one that selects everything."""
    selector = rule.spec.device_selector or DeviceTaintSelector()
    return msgspec.structs.replace(
        rule, spec=msgspec.structs.replace(rule.spec, device_selector=selector)
    )


def claim_of(metadata: Obj, spec: Obj) -> ResourceClaim:
    default_claim_spec(spec)
    return msgspec.convert({"metadata": metadata, "spec": spec}, ResourceClaim)


def matches(pod: Obj, node: AllocatorNode) -> bool:
    expected = pod["spec"].get("nodeSelector", {})
    return all(node.labels.get(name) == value for name, value in expected.items())


def replay(recorded: Obj, *, strict: bool) -> tuple[World, dict[str, str]]:
    """Place all pods one after the other; those that wait for the same claim try again."""
    world = World(recorded, strict=strict)
    outcomes: dict[str, str] = {}
    waiting: dict[str, Obj] = {}
    for pod in recorded["pods"]:
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        waiting[key] = pod
        outcomes[key] = world.place(pod)
        if outcomes[key]:
            continue
        del waiting[key]
        for other in [item for item in waiting if world.shares(pod, waiting[item])]:
            outcomes[other] = world.place(waiting[other])
            if not outcomes[other]:
                del waiting[other]
    return world, outcomes


WORLDS = worlds()

if WORLDS:  # without the folder there is nothing to replay

    @pytest.mark.parametrize("strict", [True, False], ids=["strict", "ours"])
    @pytest.mark.parametrize("recorded", WORLDS)
    def test_devices_are_those_of_the_real_scheduler(recorded: Obj, strict: bool) -> None:
        world, _ = replay(recorded, strict=strict)
        claims = recorded["outcome"]["phase1"]["claims"].items()
        want = {key: entry["allocation"] for key, entry in claims if entry["allocation"]}

        made = world.allocations.items()
        assert {key: json.loads(msgspec.json.encode(entry)) for key, entry in made} == want

    @pytest.mark.parametrize("strict", [True, False], ids=["strict", "ours"])
    @pytest.mark.parametrize("recorded", WORLDS)
    def test_texts_are_those_of_the_real_scheduler(recorded: Obj, strict: bool) -> None:
        _, outcomes = replay(recorded, strict=strict)

        for key, want in recorded["outcome"]["phase1"]["pods"].items():
            text = want.get("message") or ""
            if want["node"]:
                assert outcomes[key] == ""
            elif text:
                assert outcomes[key]
                assert outcomes[key] in text
            else:
                assert outcomes[key] == "no claim"
