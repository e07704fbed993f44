"""What a node is offered: the pools it sees, with the devices in the order in which they are tried.

An offer is a value made from slices and merged devices; whoever keeps them (`catalogue.py`) makes
a new one when they change. What was found out about an offer (candidates, lanes) is remembered in
it and so lasts exactly as long as it is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sully.api.resource.types import ResourceSlice, ResourceSliceSpec
from sully.domain.allocation.counters import Draw, Totals, dangling, draws_of, totals_of
from sully.domain.allocation.nodes import Node, is_visible, offered_to
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId, Standing, current, standing

MergedDevices = Callable[[ResourceSlice], Iterable[EffectiveDevice]]
"""Returns the devices of a slice in published order, with patches and taints laid over them."""


@dataclass(slots=True, eq=False)
class PoolOffer:
    """A pool as some nodes see it."""

    id: PoolId
    devices: tuple[EffectiveDevice, ...] = ()
    is_incomplete: bool = False
    problem: str = ""
    """Why the pool is invalid; empty if it is not."""
    elsewhere: frozenset[int] = frozenset()
    """Places of devices that stand in a visible slice but are for other nodes."""
    totals: Totals = field(default_factory=dict)
    draws: Mapping[str, tuple[Draw, ...]] = field(default_factory=dict)
    """What devices draw on counters, by name, also of devices in slices for other nodes."""
    memory: dict[object, object] = field(default_factory=dict, repr=False)
    """What was found out about this pool; no part of the value."""

    @property
    def is_usable(self) -> bool:
        """Report whether devices may be taken from the pool."""
        return not self.is_incomplete and not self.problem

    def order(self) -> tuple[bool, PoolId]:
        """Return what sorts pools: devices that need no waiting for conditions come first."""
        waits = any(each.published.device.binding_conditions for each in self.devices)
        return waits, self.id


@dataclass(slots=True, eq=False)
class NodeOffer:
    """Everything a node is offered."""

    node: Node
    pools: tuple[PoolOffer, ...]
    incomplete: tuple[PoolId, ...] = ()
    """Pools that are not used because their driver is still writing them."""
    invalid: Mapping[PoolId, str] = field(default_factory=dict)
    """Pools that are not used because they contradict themselves, and how."""
    memory: dict[object, object] = field(default_factory=dict, repr=False)
    """What was found out about these pools together; no part of the value."""


def offer_node(node: Node, pools: Iterable[PoolOffer | None]) -> NodeOffer:
    """Put together what a node is offered."""
    known = tuple(sorted((each for each in pools if each is not None), key=PoolOffer.order))
    return NodeOffer(
        node,
        known,
        incomplete=tuple(each.id for each in known if each.is_incomplete),
        invalid={each.id: each.problem for each in known if each.problem},
    )


def visible_slices(slices: Iterable[ResourceSlice], node: Node) -> tuple[ResourceSlice, ...]:
    """Return the slices of one pool that concern a node; none if it has nothing for it.

    Counters concern every node that uses a device of the pool, wherever their slice says they are.
    """
    seen = [each for each in slices if only_counts(each.spec) or is_visible(each.spec, node)]
    return tuple(seen) if any(not only_counts(each.spec) for each in seen) else ()


def only_counts(spec: ResourceSliceSpec) -> bool:
    """Report whether a slice has counters for the devices of others.

    Up to Kubernetes 1.34, counters and the devices that draw on them stand in one slice.
    """
    return bool(spec.shared_counters) and not spec.devices


def offer_pool(
    id_: PoolId,
    slices: Sequence[ResourceSlice],
    merged: MergedDevices,
    node: Node,
) -> PoolOffer | None:
    """Return a pool as a node sees it, or None if there is nothing for it.

    `slices` are all of the pool, also those for other nodes and of other generations.
    """
    visible = visible_slices(slices, node)
    if not visible:
        return None
    match standing(visible, slices):
        case Standing.REPLACED:
            return None
        case Standing.INCOMPLETE:
            return PoolOffer(id_, is_incomplete=True)
        case Standing.COMPLETE:
            return _complete(id_, current(visible), slices, merged, node)


def _complete(
    id_: PoolId,
    seen: Sequence[ResourceSlice],
    slices: Iterable[ResourceSlice],
    merged: MergedDevices,
    node: Node,
) -> PoolOffer:
    generation = seen[0].spec.pool.generation
    whole = [each for each in slices if each.spec.pool.generation == generation]
    counters = counters_of(seen, whole)
    if isinstance(counters, str):
        return PoolOffer(id_, problem=counters)
    totals, draws = counters
    devices = tuple(device for each in seen for device in merged(each))
    return PoolOffer(
        id_,
        devices,
        elsewhere=frozenset(
            place for place, device in enumerate(devices) if not _is_for(device, node)
        ),
        totals=totals,
        draws=draws,
    )


def counters_of(
    seen: Iterable[ResourceSlice], whole: Sequence[ResourceSlice]
) -> tuple[Totals, Mapping[str, tuple[Draw, ...]]] | str:
    """Return the counters of a pool and what its devices draw, or why the pool is invalid.

    Names need to be unique only among the slices that are seen together.
    """
    totals = totals_of(whole)
    if isinstance(totals, str):
        return _duplicate(seen) or totals
    draws = {device.name: draws_of(device) for each in whole for device in each.spec.devices}
    problem = _duplicate(seen) or _dangling(draws, totals)
    return problem or (totals, {name: each for name, each in draws.items() if each})


def _duplicate(slices: Iterable[ResourceSlice]) -> str:
    names: set[str] = set()
    for slice_ in slices:
        for device in slice_.spec.devices:
            if device.name in names:
                return f"duplicate device name {device.name}"
            names.add(device.name)
    return ""


def _dangling(draws: Mapping[str, tuple[Draw, ...]], totals: Totals) -> str:
    return next((text for each in draws.values() if (text := dangling(each, totals))), "")


def _is_for(device: EffectiveDevice, node: Node) -> bool:
    published = device.published
    if not published.slice.spec.per_device_node_selection:
        return True
    return offered_to(published.device, node)
