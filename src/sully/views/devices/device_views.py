"""Devices as `sully devices` shows them: one device with everything that is known of it.

Joins the inventory with its use, device by device: its node, its taints with their source and
expiry, the claims that are allocated it with their pods and tolerations, and whether other claims
could be allocated it. Allocated devices that are no longer published are included: pods still use
them, and rules still select them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

import msgspec

from sully.api.resource.annotations import expiry, pause_reason
from sully.api.resource.types import DeviceTaintSelector, DeviceToleration, ResourceSlicePatch
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.rejections.availability import (
    Availability,
    Obstacle,
    are_plain,
    used_up,
)
from sully.domain.allocation.usage.capacity import left_of, taken_of
from sully.domain.allocation.usage.conflicts import DeviceConflict, conflict_of
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.claims.pods import Pod
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.patches import sets_values
from sully.domain.devices.pools import DeviceId, PoolId, current
from sully.domain.devices.rules import choose_by_content, recorded, sourced
from sully.domain.devices.taints import SourcedTaint, blocks
from sully.domain.eviction.judge import eviction_time
from sully.domain.scheduling.filters import lifecycle_taint
from sully.domain.scheduling.objects import Node
from sully.domain.tolerations import tolerates
from sully.machinery.formats.quantity import Quantity
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import AllocatedDevice, Usage

ALL_NODES = "*"
"""The node of a device that all nodes can use."""
SOME_NODES = "(selector)"
"""The node of a device that has a node selector."""
_NOTHING: Mapping[str, Quantity] = MappingProxyType({})
DevicePredicate = Callable[[DeviceId, EffectiveDevice | None], bool]
"""Reports whether to show a device; None: it is no longer published."""


class TaintView(msgspec.Struct, frozen=True):
    """A taint on a device, with the expiry and pause of its source."""

    sourced: SourcedTaint
    expiry: datetime | None = None
    """When its rule or patch expires."""
    paused: str | None = None
    """Why its evictions are paused; None: they are not."""


class ClaimView(msgspec.Struct, frozen=True):
    """A claim that is allocated the device, and the pods that use it."""

    claim: Key
    pods: tuple[Key, ...]
    tolerations: tuple[DeviceToleration, ...] = ()
    """Those that tolerate a taint of the device."""
    admin: bool = False
    """Whether it has admin access, which does not exclude other claims."""
    eviction_time: datetime | None = None
    """When its pods are evicted because of the taints; None: they are not."""
    request: str = ""
    """The request that it is for; behind a slash, the alternative."""
    share: str | None = None
    """The share of the device that it has; None: all of it."""
    consumed: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The capacity of its share."""


class DeviceView(msgspec.Struct, frozen=True):
    """One device with its taints and claims."""

    id: DeviceId
    device: EffectiveDevice | None
    """None: it is allocated, but no longer published."""
    node: str
    taints: tuple[TaintView, ...] = ()
    claims: tuple[ClaimView, ...] = ()
    obstacle: Obstacle | None = None
    """Why it cannot be allocated, other than taints and claims."""
    left: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    """If it can be shared: how much of each capacity is left."""
    conflict: DeviceConflict | None = None
    """Why its claims cannot all use it."""
    claims_visible: bool = True
    """False: the user may not list claims, so those of the device are not known."""
    ignored_patches: tuple[str, ...] = ()
    """The patches that select it and have no effect, by name."""

    @property
    def shareable(self) -> bool:
        """Report whether several claims can have shares of it."""
        return self.device is not None and self.device.shareable

    @property
    def in_use(self) -> bool:
        """Report whether a claim uses it or a share of it; admin access does not."""
        return any(not claim.admin for claim in self.claims)

    @property
    def free(self) -> bool:
        """Report whether a new pod without tolerations could get a share or all of it."""
        if self.device is None or self.obstacle is not None:
            return False
        if any(blocks(view.sourced.taint) for view in self.taints):
            return False
        shared = self.shareable
        return all(claim.admin or (shared and claim.share is not None) for claim in self.claims)


class DeviceViews:
    """Creates the views of the devices of a cluster."""

    def __init__(
        self,
        inventory: Inventory,
        usage: Usage,
        patches: Cache[ResourceSlicePatch],
        *,
        plane: ControlPlane,
        nodes: Cache[Node] | None = None,
        claims_visible: bool = True,
    ) -> None:
        """Without `nodes`, all nodes count as schedulable."""
        self._claims_visible = claims_visible
        self._nodes = nodes
        self._inventory = inventory
        self._usage = usage
        self._patches = patches
        self._plane = plane
        self._policy = plane.eviction
        self._sources: dict[tuple[str, str], tuple[datetime | None, str | None]] = {}
        self._node_obstacles: dict[str, Obstacle | None] = {}
        self._ignored: list[ResourceSlicePatch] = []
        """The patches that have no effect."""

    def all(self, now: datetime) -> Iterator[DeviceView]:
        """Yield every device, by driver, pool and name."""
        for pool in self.pools():
            yield from self.pool(pool, now)

    def pools(self) -> list[PoolId]:
        """Return all pools with a published or allocated device, in order."""
        pools = {*self._inventory.pools(), *self._usage.pools()}
        return sorted(pools, key=lambda pool: (pool.driver, natural(pool.pool), pool.pool))

    def pool(
        self, pool: PoolId, now: datetime, selects: DevicePredicate | None = None
    ) -> Iterator[DeviceView]:
        """Yield the devices of one pool, by name; all, or those that the predicate selects."""
        self._sources.clear()  # rules may have changed
        self._node_obstacles.clear()
        published, allocated = self._inventory.devices(pool), self._usage.allocated_in(pool)
        all_published = allocated.keys() <= published.keys()
        names: Collection[str] = published if all_published else {*published, *allocated}
        if selects is not None:
            names = [x for x in names if selects(DeviceId(*pool, x), published.get(x))]
        if not names:
            return
        self._ignored = [x for x in self._patches.values() if not self._has_effect(x)]
        availability = self._availability(pool, allocated)
        for name in _in_order(tuple(names)):
            id_, device = DeviceId(*pool, name), published.get(name)
            if device is None:
                yield self._unpublished(id_, allocated.get(name, ()), now)
            else:
                yield self._published(id_, device, allocated.get(name), availability, now)

    def _published(
        self,
        id_: DeviceId,
        device: EffectiveDevice,
        allocated: Sequence[AllocatedDevice] | None,
        availability: Availability | None,
        now: datetime,
    ) -> DeviceView:
        published = device.published
        node = node_of(published)
        taints = self._taint_views(device.taints) if device.taints else ()
        obstacle, left = None, _NOTHING
        if availability is not None:
            obstacle = availability.obstacle(published.slice, published.device)
        if device.shareable:
            left = _left(device, allocated or ())
            obstacle = obstacle or used_up(device.content, left)
        return DeviceView(
            id_,
            device,
            node,
            taints,
            self._claim_views(allocated, taints, now) if allocated else (),
            obstacle or self._node_obstacle(node),
            left,
            conflict_between(allocated, device) if allocated else None,
            self._claims_visible,
            self._selecting(self._ignored, published) if self._ignored else (),
        )

    def _unpublished(
        self, id_: DeviceId, allocated: Sequence[AllocatedDevice], now: datetime
    ) -> DeviceView:
        """Return a device that is allocated, but no longer published."""
        taints = self._taint_views(self._unpublished_taints(id_, allocated))
        return DeviceView(
            id_,
            None,
            "",
            taints,
            self._claim_views(allocated, taints, now),
            conflict=conflict_between(allocated, None),
            claims_visible=self._claims_visible,
        )

    def _node_obstacle(self, node: str) -> Obstacle | None:
        """Return why a node gets no new pods."""
        known = self._node_obstacles
        if node not in known:
            if not self._nodes or node in ("", ALL_NODES, SOME_NODES):
                known[node] = None
            else:
                known[node] = node_obstacle(self._nodes.get(Key("", node)))
        return known[node]

    def _has_effect(self, patch: ResourceSlicePatch) -> bool:
        plane = self._plane
        values = sets_values(patch) and plane.honors_patched_values
        return values or any(
            plane.honors_patched_taint(taint.effect) for taint in patch.spec.devices.taints
        )

    def _selecting(
        self, patches: Iterable[ResourceSlicePatch], device: Published
    ) -> tuple[str, ...]:
        choose = self._inventory.patch_choice
        return tuple(sorted(x.metadata.name for x in patches if choose(x, device).selected))

    def _availability(
        self, id_: PoolId, allocated: Mapping[str, Iterable[AllocatedDevice]]
    ) -> Availability | None:
        """Return which devices of a pool could be allocated; None if all of them, as mostly."""
        pool = self._inventory.pool(id_)
        slices = tuple(pool.slices.values()) if pool is not None else ()
        if are_plain(current(slices)):
            return None
        used = {
            name
            for name, results in allocated.items()
            if any(not result.admin for result in results)
        }
        return Availability(slices, used)

    def _unpublished_taints(
        self, id_: DeviceId, allocated: Iterable[AllocatedDevice]
    ) -> tuple[SourcedTaint, ...]:
        annotations = (result.claim.metadata.annotations for result in allocated)
        contents = (recorded(values).get(str(id_)) for values in annotations)
        content = next((content for content in contents if content is not None), None)
        return tuple(sourced(rule) for rule in self._inventory.rules_for(id_, content))

    def _taint_views(self, taints: tuple[SourcedTaint, ...]) -> tuple[TaintView, ...]:
        return tuple([self._taint_view(taint) for taint in taints])

    def _taint_view(self, taint: SourcedTaint) -> TaintView:
        origin = taint.origin
        key = origin.kind, origin.name
        if key not in self._sources:
            self._sources[key] = self._read_source(*key)
        return TaintView(taint, *self._sources[key])

    def _read_source(self, kind: str, name: str) -> tuple[datetime | None, str | None]:
        """Return when a rule or patch expires, and why it is paused."""
        if kind == "DeviceTaintRule":
            rule = self._inventory.rule(name)
            if rule is not None:
                annotations = rule.metadata.annotations
                return expiry(annotations), pause_reason(annotations)
        if kind == "ResourceSlicePatch":
            patch = self._patches.get(Key("", name))
            if patch is not None:
                return expiry(patch.metadata.annotations), None
        return None, None

    def _claim_views(
        self, allocated: Sequence[AllocatedDevice], taints: tuple[TaintView, ...], now: datetime
    ) -> tuple[ClaimView, ...]:
        return tuple([self._claim_view(one, taints, now) for one in allocated])

    def _claim_view(
        self, allocated: AllocatedDevice, taints: tuple[TaintView, ...], now: datetime
    ) -> ClaimView:
        pods, result = self._usage.consumers(allocated.claim), allocated.result
        return ClaimView(
            key_of(allocated.claim),
            tuple(map(key_of, pods)),
            _tolerating(result.tolerations, taints) if taints else (),
            allocated.admin,
            self._eviction_time(pods, result.tolerations, taints, now) if taints else None,
            result.request,
            result.share_id,
            result.consumed_capacity,
        )

    def _eviction_time(
        self,
        pods: Iterable[Pod],
        tolerations: Sequence[DeviceToleration],
        taints: Iterable[TaintView],
        now: datetime,
    ) -> datetime | None:
        """Return when the pods of a claim are evicted because of taints."""
        if not any(pod.spec.node_name and not pod.is_terminal for pod in pods):
            return None
        times = (
            eviction_time(view.sourced.taint, tolerations, now=now, policy=self._policy)
            for view in taints
            if view.paused is None
        )
        return min((time for time in times if time is not None), default=None)

    def in_class(self, device: EffectiveDevice, class_: str) -> bool:
        """Report whether a class selects a device."""
        selector = DeviceTaintSelector(device_class_name=class_)
        return choose_by_content(selector, device.content, self._inventory.class_).selected


def _tolerating(
    tolerations: Iterable[DeviceToleration], taints: Sequence[TaintView]
) -> tuple[DeviceToleration, ...]:
    """Return the tolerations that tolerate one of the taints."""
    return tuple(
        toleration
        for toleration in tolerations
        if any(tolerates(toleration, view.sourced.taint) for view in taints)
    )


def _left(device: EffectiveDevice, allocated: Iterable[AllocatedDevice]) -> Mapping[str, Quantity]:
    """Return how much is left of a device that can be shared."""
    shares = (result.result.consumed_capacity for result in allocated if not result.admin)
    return left_of(device.content, taken_of(shares, device.published.slice.spec.driver))


def conflict_between(
    allocated: Sequence[AllocatedDevice], device: EffectiveDevice | None
) -> DeviceConflict | None:
    """Return why the claims of a device cannot all use it."""
    if len(allocated) == 1 and allocated[0].result.share_id is None:
        # Most devices that are in use.
        return None
    held = ((str(key_of(one.claim)), one.result) for one in allocated)
    return conflict_of(held, device.content if device is not None else None)


def node_obstacle(node: Node | None) -> Obstacle | None:
    """Return why a node gets no new pods, whatever they request."""
    if node is None:
        return Obstacle("NodeUnschedulable", "node not found")
    if node.spec.unschedulable:
        return Obstacle("NodeUnschedulable", "node cordoned")
    taint = lifecycle_taint(node)
    return None if taint is None else Obstacle("NodeUnschedulable", f"node tainted: {taint.key}")


def node_of(published: Published) -> str:
    """Return the node of a device, or a text for all nodes and for a node selector."""
    spec = published.slice.spec
    nodes = published.device if spec.per_device_node_selection else spec
    if nodes.node_name:
        return nodes.node_name
    return ALL_NODES if nodes.all_nodes else SOME_NODES if nodes.node_selector else ""


def natural(name: str) -> list[str | int]:
    """Return a sort key by which gpu-2 is before gpu-10."""
    # Texts and numbers alternate, so values of the same type are compared.
    parts: list[str | int] = _split(name)
    parts[1::2] = map(int, parts[1::2])
    return parts


_split = re.compile(r"([0-9]+)").split


@lru_cache(maxsize=256)
def _in_order(names: tuple[str, ...]) -> list[str]:
    """Return names in natural order; cached, because devices have the same names in every pool."""
    # The name itself is the second key: gpu-1 and gpu-01 have the same first one.
    return sorted(names, key=lambda name: (natural(name), name))
