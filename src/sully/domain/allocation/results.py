"""The AllocationResult of a claim.

Results are in the order of the requests; configuration of classes comes before that of the claim;
the node selector selects the nodes where the allocation can be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    OpaqueDeviceConfiguration,
    ResourceClaim,
)
from sully.domain.allocation.candidates import Slot
from sully.domain.allocation.plans import RequestPlan
from sully.domain.allocation.pools.nodes import NAME_FIELD, AllocatorNode
from sully.domain.allocation.requests import Alternative
from sully.domain.allocation.verdicts import Allocated
from sully.domain.devices.device import EffectiveDevice

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"

Chosen = Sequence[tuple[RequestPlan, Slot]]


def write(claim: ResourceClaim, chosen: Chosen, node: AllocatorNode) -> AllocationResult:
    """Return the allocation of one claim."""
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple([_result(plan.alternative, slot) for plan, slot in chosen]),
            config=tuple(_configuration(claim, chosen)),
        ),
        node_selector=_node_selector((slot.device for _, slot in chosen), node),
    )


def with_share_ids(allocated: Allocated, ids: Iterable[str]) -> Allocated:
    """Set the share IDs, which the caller creates once a node is chosen."""
    fresh = iter(ids)
    allocations = list(allocated.allocations)
    for claim, place in allocated.shares:
        devices = allocations[claim].devices
        results = list(devices.results)
        results[place] = msgspec.structs.replace(results[place], share_id=next(fresh))
        allocations[claim] = msgspec.structs.replace(
            allocations[claim], devices=msgspec.structs.replace(devices, results=tuple(results))
        )
    return replace(allocated, allocations=tuple(allocations), shares=())


def _result(alternative: Alternative, slot: Slot) -> DeviceRequestAllocationResult:
    published, pool = slot.device.published, slot.pool
    return DeviceRequestAllocationResult(
        request=alternative.full_name,
        driver=pool.driver,
        pool=pool.pool,
        device=slot.name,
        admin_access=True if alternative.admin_access else None,
        tolerations=alternative.tolerations,
        binding_conditions=published.device.binding_conditions,
        binding_failure_conditions=published.device.binding_failure_conditions,
        consumed_capacity=dict(slot.need.texts) if slot.need is not None else {},
        skip_node_operations=published.slice.spec.skip_node_operations,
    )


def _configuration(claim: ResourceClaim, chosen: Chosen) -> Iterator[DeviceAllocationConfiguration]:
    used = {plan.alternative.request: plan.alternative for plan, _ in chosen}
    requests = claim.spec.devices.requests or ()
    ordered = [used[request.name] for request in requests if request.name in used]
    classes = {
        alternative.device_class.metadata.name: alternative.device_class for alternative in ordered
    }
    for name, device_class in classes.items():
        names = tuple(
            alternative.full_name
            for alternative in ordered
            if alternative.requirements.class_name == name
        )
        for config in device_class.spec.config:
            yield _config(FROM_CLASS, names, config.opaque, ordered)
    for own in claim.spec.devices.config:
        if not own.requests or any(_is_in(alternative, own.requests) for alternative in ordered):
            yield _config(FROM_CLAIM, own.requests, own.opaque, ordered)


def _config(
    source: str,
    requests: tuple[str, ...],
    opaque: OpaqueDeviceConfiguration | None,
    alternatives: Iterable[Alternative],
) -> DeviceAllocationConfiguration:
    # No names means all requests, which is shorter to write and to read.
    covers_all = all(_is_in(alternative, requests) for alternative in alternatives)
    return DeviceAllocationConfiguration(
        source=source, requests=() if covers_all else requests, opaque=opaque
    )


def _is_in(alternative: Alternative, requests: Sequence[str]) -> bool:
    return alternative.request in requests or alternative.full_name in requests


def _node_selector(devices: Iterable[EffectiveDevice], node: AllocatorNode) -> NodeSelector | None:
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for device in devices:
        published, spec = device.published.device, device.published.slice.spec
        source = published if spec.per_device_node_selection else spec
        if source.node_name or published.binds_to_node:
            return _only(node)
        if source.node_selector is not None:
            for term in source.node_selector.node_selector_terms or ():
                _add(expressions, term.match_expressions)
                _add(fields, term.match_fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _only(node: AllocatorNode) -> NodeSelector:
    name = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node.name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))


def _add(
    requirements: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]
) -> None:
    """Add requirements that are missing; the order of values does not matter."""
    for new in more:
        if not any(
            new.key == old.key
            and new.operator == old.operator
            and set(new.values) == set(old.values)
            for old in requirements
        ):
            requirements.append(new)
